#include "aggregate/consumer/graph_book.h"

#include <algorithm>

namespace proton {
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
