#include "aggregate/consumer/event_book.h"

#include <algorithm>
#include <utility>

#include "calltree/context_tree.h"
#include "context/thread/current.h"
#include "context/thread/thread_state.h"
#include "support/tick_clock.h"

namespace proton {
namespace {

SessionEvents *events_of(const EpochMember &member) { return member.tree->events(); }

EventKind event_kind(RangeKind kind) {
  if (kind == RangeKind::kOp)
    return EventKind::kOp;
  return kind == RangeKind::kKernel ? EventKind::kInterpreted : EventKind::kScope;
}

/// Whether it is the frame that a launch hook puts around a launch.
bool names_kernel(ContextId at) {
  return at != 0 && ContextTree::instance().node(at).kind == FrameKind::kKernel;
}

ContextId without_states(ContextId at) {
  const ContextTree &contexts = ContextTree::instance();
  while (at != 0 && contexts.node(at).kind == FrameKind::kState)
    at = contexts.node(at).parent;
  return at;
}

/// The frame of the thread's own stack where `at` stands; null when it is another thread's, or one
/// that no event will show.
StackEntry *frame_of(ShadowStack &stack, ContextId at) {
  at = without_states(at);
  for (uint32_t i = at == 0 ? 0 : stack.depth(); i-- != 0;) {
    StackEntry &entry = stack.entry(i);
    if (entry.is_noop || entry.id.load(std::memory_order_relaxed) != at)
      continue;
    bool is_scope = entry.kind == FrameKind::kScope || entry.kind == FrameKind::kTest ||
                    entry.kind == FrameKind::kLayer;
    return !is_scope || entry.start() > 0 ? &entry : nullptr;
  }
  return nullptr;
}

} // namespace

void EventBook::announce(const EpochMember &member, uint32_t thread) {
  if (thread == kNoThread || events_of(member)->has_announced(member.phase, thread))
    return;
  ThreadLabel label = label_of_thread(thread);
  events_of(member)->announce(member.phase, {thread, label.thread_id, std::move(label.name)});
}

void EventBook::count_lost(const EpochMember &member) {
  if (uint64_t lost = events_of(member)->take_lost(); lost != 0)
    member.tree->lose(kNoRoom, lost);
  if (uint64_t lost = events_of(member)->take_lost_scopes(); lost != 0)
    member.tree->lose(kNoRoomForScopes, lost);
}

void EventBook::handed(const EpochMember &member) {
  count_lost(member);
  const std::shared_ptr<EventSink> &sink = events_of(member)->sink();
  if (std::find(filled_.begin(), filled_.end(), sink) == filled_.end())
    filled_.push_back(sink);
}

void EventBook::add_launch(const LaunchRecord &launch, const Epoch &epoch, const NotedCall &noted) {
  if (calls_.size() >= trim_at_)
    trim();
  LaunchCall call;
  call.correlation_id = launch.correlation_id;
  call.number = next_launch_++;
  call.called_ns = launch.called_ns;
  call.epoch = launch.at.epoch;
  call.thread = noted.thread;
  if (noted.returned_ns != 0)
    call.returned_ns = std::max(noted.returned_ns, launch.called_ns);
  call.awaits_return = launch.awaits_return;
  if (values_.size() != 0 && names_kernel(launch.at.shadow)) {
    if (auto values = values_.take(noted.thread, launch.at.shadow, INT64_MIN, noted.tick_ns)) {
      launch_values_.insert_or_assign(call.number, std::move(*values));
      call.has_values = true;
    }
  }
  for (const EpochMember &member : epoch.members)
    if (events_of(member))
      announce(member, noted.thread);
  if (auto replaced = calls_.add(call); replaced && replaced->has_values)
    launch_values_.erase(replaced->number);
}

void EventBook::returned(uint64_t correlation_id, int64_t returned_ns) {
  LaunchCall *call = calls_.find(correlation_id);
  if (!call)
    return;
  call->returned_ns = std::max(returned_ns, call->called_ns);
  const Epoch *epoch = call->is_shown ? epochs_.find(call->epoch) : nullptr;
  if (epoch)
    for (const EpochMember &member : epoch->members)
      if (events_of(member) && events_of(member)->returned(call->number, call->returned_ns))
        handed(member);
  if (call->is_over)
    close(correlation_id);
}

std::optional<EventValues> EventBook::values_of(const RangeRecord &record) {
  if (values_.size() == 0)
    return std::nullopt;
  int64_t start_ns = record.end_ns - record.duration_ns;
  ContextId at = record.at.shadow;
  std::optional<EventValues> values = values_.take(record.thread, at, start_ns, record.end_ns);
  // Metadata of a launch are given to the frame that names it, before the kernel runs.
  ContextId above = ContextTree::instance().node(at).parent;
  if (!values && record.kind == RangeKind::kKernel && names_kernel(above))
    values = values_.take(record.thread, above, INT64_MIN, record.end_ns);
  return values;
}

void EventBook::add_range(const RangeRecord &record, const Epoch &epoch,
                          std::span<const NodeIndex> nodes) {
  if (record.kind == RangeKind::kSeen || record.end_ns == 0)
    return;
  std::optional<EventValues> values = values_of(record);
  int64_t start_tick_ns = record.end_ns - record.duration_ns;
  TimelineEvent event;
  event.kind = event_kind(record.kind);
  event.start_ns = ticks_.monotonic(start_tick_ns);
  event.end_ns = std::max(event.start_ns, ticks_.monotonic(record.end_ns));
  event.track = record.thread;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const EpochMember &member = epoch.members[i];
    SessionEvents *events = events_of(member);
    if (!events || nodes[i] == kNoNode ||
        events->was_open(member.phase, record.thread, start_tick_ns))
      continue;
    announce(member, record.thread);
    event.node = nodes[i];
    if (events->add(member.phase, member.tree->bare_tree(member.phase), event,
                    values ? &*values : nullptr))
      handed(member);
  }
}

void EventBook::add_work(const EpochMember &member, const DeviceWork &work, NodeIndex leaf,
                         NodeIndex call_node) {
  SessionEvents *events = events_of(member);
  const LaunchCall *call = calls_.find(work.correlation_id);
  const CallPathTree &tree = member.tree->bare_tree(member.phase);
  bool is_joined = call && call->called_ns != 0;
  if (is_joined && !call->is_shown) {
    TimelineEvent event;
    event.kind = EventKind::kLaunch;
    event.start_ns = call->called_ns;
    event.end_ns = std::max(call->called_ns, call->returned_ns);
    event.launch = call->number;
    event.node = call_node;
    event.track = call->thread;
    if (call->lacks_return())
      events->hold(member.phase, tree, event);
    else if (events->add(member.phase, tree, event))
      handed(member);
  }
  TimelineEvent event;
  event.kind = work.kind;
  event.start_ns = work.start_ns;
  event.end_ns = work.end_ns;
  event.launch = is_joined ? call->number : 0;
  event.node = leaf;
  event.track = work.stream;
  event.device = tree.nodes()[leaf].device;
  event.is_of_graph = work.is_of_graph;
  EventValues bytes;
  const EventValues *values = nullptr;
  if (work.kind == EventKind::kCopy) {
    static const Name name("bytes");
    bytes.values.emplace_back(name, std::to_string(work.bytes));
    values = &bytes;
  } else if (call && call->has_values && !call->is_shown) {
    values = &launch_values_[call->number];
  }
  if (events->add(member.phase, tree, event, values))
    handed(member);
}

void EventBook::close(uint64_t correlation_id) {
  LaunchCall *call = calls_.find(correlation_id);
  if (!call)
    return;
  if (std::exchange(call->has_values, false))
    launch_values_.erase(call->number);
  if (!scoped_.is_empty())
    show(scoped_.without_kernel(correlation_id));
  call->is_over = true;
  if (!call->is_shown || !call->lacks_return())
    calls_.take(correlation_id);
}

void EventBook::expect_scopes(uint64_t correlation_id) {
  if (const LaunchCall *call = calls_.find(correlation_id))
    scoped_.expect(correlation_id, call->epoch);
}

void EventBook::add_scopes(const EpochMember &member, const TimelineRecord &record) {
  std::optional<TimelineLaunch> scopes = member.tree->own_scopes(member.phase, record);
  if (!scopes) {
    member.tree->lose(kNoRoomForScopes, record.instances.size() + record.left_out);
    return;
  }
  HeldScopes held{record.at.epoch, member.tree->generation(), member.phase, std::move(*scopes)};
  show(scoped_.add(record.correlation_id, std::move(held)));
}

void EventBook::show(ScopedLaunches::Released released) {
  for (HeldScopes &held : released) {
    const Epoch *epoch = epochs_.find(held.epoch);
    if (!epoch)
      continue; // its phase was cleared
    for (const EpochMember &member : epoch->members)
      if (member.tree->generation() == held.session && events_of(member) &&
          events_of(member)->add(held.phase, member.tree->bare_tree(held.phase),
                                 std::move(held.scopes)))
        handed(member);
  }
}

std::optional<uint64_t> EventBook::scope_of(const Capture &at) {
  StackEntry *frame = frame_of(this_thread().stack, at.shadow);
  return frame ? std::optional(frame->scope_id()) : std::nullopt;
}

void EventBook::add_value(const ValueRecord &record, const UserMetric &metric) {
  const Epoch *epoch = epochs_.find(record.at.epoch);
  if (!epoch || !epoch->has_events())
    return;
  OpenInstance instance{record.thread, without_states(record.at.shadow), record.scope_id,
                        record.at.epoch};
  values_.add(instance, record.at_ns, metric);
}

void EventBook::push(const EpochMember &member) {
  if (!events_of(member))
    return;
  events_of(member)->push();
  count_lost(member);
  if (calls_.size() + values_.size() >= trim_at_)
    trim();
}

void EventBook::add_open_scopes(const EpochMember &member) {
  SessionEvents *events = events_of(member);
  if (!events)
    return;
  int64_t now_tick_ns = TickClock::now_ns();
  std::vector<OpenScope> scopes;
  for_each_thread([&](ThreadState &thread) {
    scopes.clear();
    thread.stack.append_open(scopes);
    for (const OpenScope &scope : scopes) {
      NodeIndex node = member.tree->scope_node(member.phase, scope.id);
      if (node == kNoNode || events->was_open(member.phase, thread.number, scope.start_ns))
        continue;
      announce(member, thread.number);
      events->note_open(member.phase, thread.number, scope.start_ns);
      std::optional<EventValues> values =
          values_.take(thread.number, scope.id, scope.start_ns, now_tick_ns);
      TimelineEvent event;
      event.start_ns = ticks_.monotonic(scope.start_ns);
      event.end_ns = std::max(event.start_ns, ticks_.monotonic(now_tick_ns));
      event.node = node;
      event.track = thread.number;
      event.is_open = true;
      if (events->add(member.phase, member.tree->bare_tree(member.phase), event,
                      values ? &*values : nullptr))
        handed(member);
    }
  });
}

void EventBook::end_phase(const EpochMember &member) {
  if (!events_of(member))
    return;
  show(scoped_.end_phase(member.tree->generation(), member.phase));
  events_of(member)->end_phase(member.phase);
  count_lost(member);
  trim();
}

void EventBook::trim() {
  auto is_over = [&](EpochId epoch) { return epochs_.find(epoch) == nullptr; };
  calls_.remove_if([&](const LaunchCall &call) {
    if (!is_over(call.epoch))
      return false;
    if (call.has_values)
      launch_values_.erase(call.number);
    return true;
  });
  values_.forget_if(is_over);
  trim_at_ = std::max(kFewestToTrim, 2 * (calls_.size() + values_.size()));
  scoped_.forget_if(is_over);
}

namespace {

/// The place, where the session saw the capture; else null.
const CapturedAt *seen_by(const EpochMember &member, const CapturedAt *place) {
  return place && place->is_seen_by(member.tree->generation()) ? place : nullptr;
}

DeviceWork work_of(const KernelRecord &record) {
  bool is_whole = record.graph_node == kWholeGraph;
  EventKind kind = is_whole ? EventKind::kGraph : EventKind::kKernel;
  return {kind, record.correlation_id, record.start_ns, record.end_ns, record.stream, !is_whole};
}

DeviceWork work_of(const CopyRecord &record) {
  return {EventKind::kCopy, record.correlation_id, record.start_ns,
          record.end_ns,    record.stream,         true,
          record.bytes};
}

} // namespace

std::vector<uint32_t> GraphBook::sessions_of(const Capture &at) const {
  std::vector<uint32_t> sessions;
  if (const Epoch *epoch = epochs_.find(at.epoch))
    for (const EpochMember &member : epoch->members)
      sessions.push_back(member.tree->generation());
  return sessions;
}

CaptureId GraphBook::captured(const Capture &at) noexcept {
  if (at.epoch == 0)
    return 0;
  try {
    auto lock = owner_.lock();
    std::vector<uint32_t> sessions = sessions_of(at);
    // Without an epoch its contexts may be gone by now, and no session wants them.
    return sessions.empty() ? 0 : captures_.keep(at, sessions);
  } catch (...) { // no memory: the node is shown by the name of its kernel
    return 0;
  }
}

CaptureId GraphBook::keep_values(const Capture &at, const std::vector<UserMetric> &metrics) {
  std::vector<uint32_t> sessions = sessions_of(at);
  return sessions.empty() ? 0 : captures_.keep(at, sessions, metrics);
}

void GraphBook::keep(std::span<const CaptureId> captures) noexcept {
  auto lock = owner_.lock();
  for (CaptureId id : captures)
    captures_.keep(id);
}

void GraphBook::give_back(std::span<const CaptureId> captures) noexcept {
  auto lock = owner_.lock();
  for (CaptureId id : captures)
    captures_.give_back(id);
}

LayoutId GraphBook::add(GraphLayout layout) noexcept {
  try {
    auto lock = owner_.lock();
    return launches_.add(std::move(layout));
  } catch (...) { // no memory: its launches are of an unknown graph
    return 0;
  }
}

void GraphBook::retire(LayoutId layout) noexcept {
  try {
    auto lock = owner_.lock();
    owner_.drain(); // launches that name it
    launches_.retire(layout);
    while (uint64_t oldest = launches_.take_settled_retired())
      end(oldest);
  } catch (...) { // no memory: it stays
  }
}

void GraphBook::add_launch(const LaunchRecord &launch) {
  if (OpenGraph *older = launches_.find(launch.correlation_id)) {
    Epoch *epoch = epochs_.find(older->launch.at.epoch);
    if (epoch && !older->is_complete) {
      ++epoch->counts.dropped;
      epochs_.lose("correlation id used again before its record came", 1, epoch);
    }
    discard_values(*older);
    close(launch.correlation_id);
  }
  OpenGraph &open = launches_.open(launch);
  if (Epoch *epoch = epochs_.find(launch.at.epoch))
    ++epoch->counts.launches;
  pull_values(open);
  proceed(open);
}

bool GraphBook::retract(uint64_t correlation_id) {
  OpenGraph *open = launches_.find(correlation_id);
  if (!open)
    return false;
  Epoch *epoch = epochs_.find(open->launch.at.epoch);
  if (epoch && !open->is_complete)
    ++epoch->counts.failed;
  close(correlation_id);
  return true;
}

void GraphBook::close(uint64_t correlation_id) {
  launches_.close(correlation_id);
  events_.forget(correlation_id);
}

OpenGraph *GraphBook::find(uint64_t correlation_id, bool may_lack_launch) {
  OpenGraph *open = launches_.find(correlation_id);
  if (!open && !may_lack_launch)
    epochs_.lose("record of a graph without a launch", 1, nullptr);
  return open;
}

template <typename Record>
void GraphBook::add_node(const OpenGraph &open, CaptureId at, const Record &record,
                         const char *if_untimed) {
  Epoch *epoch = epochs_.find(open.launch.at.epoch);
  if (!epoch)
    return;
  if (!has_duration(record)) {
    epochs_.lose(if_untimed, 1, epoch);
    return;
  }
  const CapturedAt *place = captures_.find(at);
  DeviceWork work = work_of(record);
  for (const EpochMember &member : epoch->members) {
    GraphPlace where{seen_by(member, place) ? at : 0, place ? &place->at : nullptr};
    NodeIndex leaf = member.tree->add_node(member.phase, open.launch, where, record);
    if (!member.tree->events())
      continue;
    bool is_whole = work.kind == EventKind::kGraph;
    NodeIndex call = is_whole ? leaf : member.tree->graph_node(member.phase, open.launch);
    events_.add_work(member, work, leaf, call);
  }
  events_.show(record.correlation_id);
}

void GraphBook::add_kernel(const KernelRecord &record) {
  OpenGraph *open = find(record.correlation_id, record.may_lack_launch);
  if (!open)
    return;
  CaptureId at = launches_.note(*open, record.graph_node, true);
  if (!record.is_own) {
    add_node(*open, at, record, "kernel record with end before start");
    open->launch.called_ns = 0; // the latency of the launch is that of its first kernel
  }
  if (open->is_complete)
    complete(*open);
  proceed(*open);
}

void GraphBook::add_copy(const CopyRecord &record) {
  OpenGraph *open = launches_.find(record.correlation_id);
  if (!open)
    return;
  add_node(*open, launches_.note(*open, record.graph_node, false), record,
           "copy record with end before start");
  proceed(*open);
}

void GraphBook::proceed(OpenGraph &open) {
  const GraphLayout &layout = open.layout->layout;
  if (open.is_complete && layout.is_exact) {
    close(open.launch.correlation_id);
    return;
  }
  if (uint64_t oldest = launches_.take_settled(open)) // perhaps this one
    end(oldest);
  if (uint64_t oldest = launches_.take_settled_retired())
    end(oldest);
}

void GraphBook::end(uint64_t correlation_id) {
  OpenGraph *over = launches_.find(correlation_id);
  if (!over || (over->layout->layout.is_known && over->missing != 0))
    return;
  complete(*over);
  close(correlation_id);
}

void GraphBook::complete(OpenGraph &open) {
  Epoch *epoch = epochs_.find(open.launch.at.epoch);
  if (!open.is_counted) {
    if (epoch)
      ++epoch->counts.records;
    for (CaptureId metrics : open.layout->layout.metrics)
      add_metrics(open.launch, epoch, metrics);
  }
  open.is_counted = open.is_complete = true;
}

void GraphBook::add_metrics(const LaunchRecord &launch, Epoch *epoch, CaptureId metrics) {
  const CapturedAt *place = captures_.find(metrics);
  if (!place)
    return;
  std::vector<UserMetric> values = take_values(*place, epoch);
  if (!epoch)
    return;
  for (const EpochMember &member : epoch->members) {
    if (!seen_by(member, place))
      continue;
    for (const UserMetric &metric : values) {
      try {
        member.tree->add_metric(member.phase, launch, {metrics, &place->at}, metric);
        ++epoch->counts.metrics;
      } catch (...) { // of another type than before
        member.tree->lose("metric under capture not added", 1);
      }
    }
  }
}

std::vector<UserMetric> GraphBook::take_values(const CapturedAt &place, Epoch *epoch) {
  std::vector<UserMetric> values;
  uint64_t lost = 0;
  for (const UserMetric &metric : place.metrics) {
    std::optional<MetricValue> value =
        metric.on_device ? metric.on_device->take() : std::optional(metric.value);
    if (value)
      values.emplace_back(*metric.metric, std::move(*value));
    else
      ++lost;
  }
  if (lost != 0 && epoch)
    epochs_.lose("value that a graph left on its device", lost, epoch);
  return values;
}

void GraphBook::discard_values(const OpenGraph &open) {
  if (!open.is_counted)
    for (CaptureId metrics : open.layout->layout.metrics)
      if (const CapturedAt *place = captures_.find(metrics))
        take_values(*place, nullptr);
}

void GraphBook::pull_values(const OpenGraph &open) {
  for (CaptureId metrics : open.layout->layout.metrics)
    if (const CapturedAt *place = captures_.find(metrics))
      for (const UserMetric &metric : place->metrics)
        if (metric.on_device)
          metric.on_device->pull();
}

bool GraphBook::has_device_values() noexcept {
  auto lock = owner_.lock();
  bool has = false;
  captures_.for_each_on_device([&](const DeviceValues &) { has = true; });
  return has;
}

void GraphBook::skip_device_values() noexcept {
  try {
    auto lock = owner_.lock();
    captures_.for_each_on_device([](DeviceValues &values) { values.skip(); });
  } catch (...) { // no memory: the next launches get what these left
  }
}

void GraphBook::count_pending(uint64_t first_id, uint64_t last_id, PendingLaunches &pending) {
  launches_.for_each([&](const OpenGraph &open) {
    uint64_t id = open.launch.correlation_id;
    if (id < first_id || id > last_id)
      return;
    pending.newest_id = std::max(pending.newest_id, id);
    if (open.layout->layout.is_known)
      pending.kernels += open.missing;
    else
      pending.kernels += open.has_records ? 0 : 1;
  });
}

void GraphBook::settle(const SettledRecord &record, uint64_t known_lost) {
  std::vector<uint64_t> over;
  launches_.for_each([&](OpenGraph &open) {
    uint64_t id = open.launch.correlation_id;
    if (id < record.first_id || id > record.last_id)
      return;
    bool is_missing = open.layout->layout.is_known && open.missing != 0;
    if (is_missing && !record.gives_kernels_up)
      return;
    over.push_back(id);
    if (!is_missing) {
      complete(open);
      return;
    }
    discard_values(open);
    Epoch *epoch = epochs_.find(open.launch.at.epoch);
    if (!epoch)
      return;
    ++epoch->counts.dropped;
    uint64_t explained = std::min<uint64_t>(known_lost, open.missing);
    known_lost -= explained;
    if (open.missing != explained)
      epochs_.lose("kernel of a graph without a record", open.missing - explained, epoch);
  });
  for (uint64_t id : over)
    close(id);
}

} // namespace proton
