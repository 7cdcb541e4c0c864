#include "writer/timeline/event_encoder.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace proton {
namespace {

TrackKind track_kind(EventKind kind) {
  bool is_work =
      kind == EventKind::kKernel || kind == EventKind::kCopy || kind == EventKind::kGraph;
  return is_work ? TrackKind::kStream : TrackKind::kThread;
}

/// From the graph's own node down to `parent`; empty if there is no such node above.
std::vector<uint32_t> captured_path(const EventNodes &nodes, uint32_t parent) {
  std::vector<uint32_t> path;
  for (uint32_t node = nodes.known(parent); node != 0; node = nodes.parent(node)) {
    path.push_back(node);
    if (nodes.kind(node) == FrameKind::kGraph) {
      std::reverse(path.begin(), path.end());
      return path;
    }
  }
  return {};
}

constexpr int64_t kFarNs = 24LL * 3600 * 1'000'000'000; // no clocks that count the same differ so
constexpr uint64_t kLink = uint64_t{1} << 63;           // no launch has such a number

constexpr uint64_t kUnknownClockHz = 1'000'000'000; // as upstream takes it for all devices
constexpr uint64_t kLeastClockHz = 1'000'000;       // below it 43 bits of clock cannot be a time

/// Rate of the clock that counts cycles; upstream's guess if it is not known.
uint64_t scope_clock_hz(const TimelineLaunch &launch) {
  return launch.clock_hz < kLeastClockHz ? kUnknownClockHz : launch.clock_hz;
}

/// Picoseconds in `cycles` cycles.
uint64_t cycle_picoseconds(uint64_t cycles, uint64_t hz) {
  long double exact = static_cast<long double>(cycles) * 1e12L / static_cast<long double>(hz);
  return static_cast<uint64_t>(std::llroundl(exact));
}

// Where cycle 0 is: picoseconds after `base_ns`, which must not be after the program's beginning.
// The first record closely follows the reading of `init_ns`; if it was replaced, the last record
// precedes `pre_final_ns`.
uint64_t first_cycle_ps(const TimelineLaunch &launch, const TimelineProgram &program,
                        uint64_t base_ns) {
  uint64_t init_ps = (program.init_ns - base_ns) * 1000;
  if (!program.is_lossy || program.pre_final_ns < program.init_ns)
    return init_ps;
  uint64_t final_ps = (program.pre_final_ns - base_ns) * 1000;
  uint64_t length_ps = cycle_picoseconds(program.last_cycle, scope_clock_hz(launch));
  return std::max(init_ps, final_ps - std::min(length_ps, final_ps));
}

int64_t rounded_ns(uint64_t picoseconds) {
  return static_cast<int64_t>((picoseconds + 500) / 1000);
}

/// Clips the event to its kernel, if that is known.
void clip(TimelineEvent &event, const TimelineLaunch &launch) {
  if (launch.kernel_end_ns == 0)
    return;
  event.start_ns = std::clamp(event.start_ns, launch.kernel_start_ns, launch.kernel_end_ns);
  event.end_ns = std::clamp(event.end_ns, event.start_ns, launch.kernel_end_ns);
}

} // namespace

void GraphRuns::leave(Run &run, size_t depth) {
  while (run.open.size() > depth) {
    run.slices.push_back(run.open.back());
    run.open.pop_back();
  }
}

void GraphRuns::enter(Run &run, const HeldEvent &work) {
  std::vector<uint32_t> path = captured_path(nodes_, run.parent);
  size_t shared = 0;
  while (shared < path.size() && shared < run.open.size() &&
         run.open[shared].event.node == path[shared])
    ++shared;
  leave(run, shared);
  for (size_t depth = shared; depth < path.size(); ++depth) {
    HeldEvent slice;
    slice.event.start_ns = work.event.start_ns;
    slice.event.launch = work.event.launch;
    slice.event.node = path[depth];
    slice.event.track = work.event.track;
    slice.event.device = work.event.device;
    slice.event.is_of_graph = true;
    slice.track = {TrackKind::kGraph, work.event.device, work.event.track};
    run.open.push_back(slice);
  }
}

void GraphRuns::close(Run &run) {
  leave(run, 0);
  finished_.insert(finished_.end(), run.slices.begin(), run.slices.end());
  run.slices.clear();
}

void GraphRuns::add(const HeldEvent &work) {
  Run &run = runs_[work.lane];
  uint32_t parent = nodes_.parent(work.event.node);
  bool is_other = run.launch != work.event.launch || run.slices.size() >= kMaxSlices;
  if (is_other)
    close(run);
  if (is_other || parent != run.parent) {
    run.launch = work.event.launch;
    run.parent = parent;
    enter(run, work);
  }
  for (HeldEvent &slice : run.open)
    slice.event.end_ns = std::max(slice.event.end_ns, work.event.end_ns);
}

void GraphRuns::finish() {
  for (auto &[lane, run] : runs_)
    close(run);
  runs_.clear();
}

std::optional<uint32_t> LaunchFlows::arrow(const TimelineEvent &event) {
  bool is_work = event.kind == EventKind::kKernel || event.kind == EventKind::kCopy ||
                 event.kind == EventKind::kGraph;
  if (!is_work || event.launch == 0)
    return std::nullopt;
  if (!event.is_of_graph && event.kind != EventKind::kGraph)
    return 0;
  auto [found, is_new] = streams_.try_emplace(event.launch);
  if (is_new) {
    oldest_.push_back(event.launch);
    if (oldest_.size() > kMaxLaunches) {
      streams_.erase(oldest_.front());
      oldest_.pop_front();
      found = streams_.find(event.launch);
    }
  }
  std::vector<uint64_t> &streams = found->second;
  uint64_t stream = uint64_t{static_cast<uint32_t>(event.device)} << 32 | event.track;
  if (streams.size() >= kMaxArrows ||
      std::find(streams.begin(), streams.end(), stream) != streams.end())
    return std::nullopt;
  streams.push_back(stream);
  return static_cast<uint32_t>(streams.size()) - 1;
}

void EventEncoder::start(const TraceFacts &facts) {
  facts_ = facts;
  newest_ns_ = facts.start_ns;
}

void EventEncoder::add(const EventBatch &batch, std::string &out) {
  nodes_.add(batch.nodes);
  for (const EventThread &thread : batch.threads)
    name_thread(thread);
  counters_.insert(counters_.end(), batch.counters.begin(), batch.counters.end());
  events_.reserve(events_.size() + batch.events.size());
  for (const TimelineEvent &event : batch.events) {
    HeldEvent held;
    held.event = event;
    held.track = {track_kind(event.kind), event.device, event.track};
    if (event.values != 0 && event.values <= batch.values.size())
      held.values = &batch.values[event.values - 1];
    hold(held);
  }
  hand_out_if_many(out);
  for (const auto &launch : batch.kernel_scopes) {
    add_programs(*launch);
    hand_out_if_many(out);
  }
}

/// The values are copied.
void EventEncoder::hold(const HeldEvent &held) {
  HeldEvent &added = events_.emplace_back(held);
  added.event.end_ns = std::max(held.event.start_ns, held.event.end_ns);
  if (held.values != nullptr)
    added.values = &values_.emplace_back(*held.values);
}

void EventEncoder::hand_out_if_many(std::string &out) {
  if (events_.size() + counters_.size() >= kMaxEvents)
    hand_out(out);
}

// The outer one first: if two began together, the longer; if both times are equal, the one with the
// shorter call path, or the one that ended and came later.
void EventEncoder::sort() {
  order_.resize(events_.size());
  std::iota(order_.begin(), order_.end(), 0u);
  auto is_before = [this](uint32_t left, uint32_t right) {
    const TimelineEvent &a = events_[left].event;
    const TimelineEvent &b = events_[right].event;
    if (a.start_ns != b.start_ns)
      return a.start_ns < b.start_ns;
    return std::tuple(b.end_ns, nodes_.depth(a.node), right) <
           std::tuple(a.end_ns, nodes_.depth(b.node), left);
  };
  if (!std::is_sorted(order_.begin(), order_.end(), is_before)) // as scopes in a row are
    std::sort(order_.begin(), order_.end(), is_before);
}

void EventEncoder::place() {
  for (uint32_t position : order_) {
    HeldEvent &held = events_[position];
    newest_ns_ = std::max(newest_ns_, held.event.end_ns);
    auto place = lanes_.place(held.track, held.event.start_ns, held.event.end_ns);
    if (!place) {
      ++without_lane_;
      continue;
    }
    held.lane = place->lane;
    held.event.start_ns = place->start_ns;
    if (held.lane >= by_lane_.size())
      by_lane_.resize(lanes_.size());
    by_lane_[held.lane].push_back(position);
  }
  lanes_.settle();
}

void EventEncoder::write_lane(const std::vector<uint32_t> &positions, std::string &out) {
  std::vector<const HeldEvent *> open;
  auto close_until = [&](int64_t at_ns) {
    while (!open.empty() && open.back()->event.end_ns <= at_ns) {
      end_slice(*open.back());
      open.pop_back();
    }
  };
  for (uint32_t position : positions) {
    const HeldEvent &held = events_[position];
    close_until(held.event.start_ns);
    begin_slice(held, out);
    open.push_back(&held);
  }
  close_until(INT64_MAX);
}

void EventEncoder::hand_out(std::string &out) {
  sort();
  place();
  for (std::vector<uint32_t> &positions : by_lane_) {
    write_lane(positions, out);
    positions.clear();
  }
  events_.clear();
  values_.clear();
  for (const HeldEvent &slice : runs_.take_finished())
    hold(slice);
  std::stable_sort(
      counters_.begin(), counters_.end(),
      [](const EventCounter &left, const EventCounter &right) { return left.at_ns < right.at_ns; });
  for (const EventCounter &counter : counters_)
    write_counter(counter, out);
  counters_.clear();
  handed_out(out);
}

std::map<std::string, uint64_t> EventEncoder::finish(const TraceEnd &end, std::string &out) {
  hand_out(out);
  runs_.finish();
  for (const HeldEvent &slice : runs_.take_finished())
    hold(slice);
  hand_out(out);
  std::map<std::string, uint64_t> dropped = end.dropped;
  if (without_lane_ > 0)
    dropped["event of a timeline that found no lane"] += without_lane_;
  return dropped;
}

// The devices' timers count unix time; one that counts something else is set by when the launch
// ran.
int64_t EventEncoder::timer_offset_ns(const TimelineLaunch &launch) {
  if (launch.timer.is_known())
    return static_cast<int64_t>(-static_cast<uint64_t>(launch.timer.offset_ns));
  auto found = offsets_ns_.find(launch.device);
  if (found != offsets_ns_.end())
    return found->second;
  uint64_t first = UINT64_MAX;
  for (const TimelineProgram &program : launch.programs)
    first = std::min(first, program.init_ns);
  auto offset = static_cast<int64_t>(first - static_cast<uint64_t>(newest_ns_));
  uint64_t distance = static_cast<uint64_t>(offset) - static_cast<uint64_t>(facts_.unix_offset_ns);
  if (static_cast<int64_t>(distance) < kFarNs && static_cast<int64_t>(distance) > -kFarNs)
    offset = facts_.unix_offset_ns;
  offsets_ns_.emplace(launch.device, offset);
  return offset;
}

void EventEncoder::add_scopes(const TimelineLaunch &launch, const TimelineProgram &program,
                              int64_t start_ns) {
  uint64_t hz = scope_clock_hz(launch);
  uint64_t base_ps = first_cycle_ps(launch, program, program.init_ns);
  size_t first = std::min<size_t>(program.first, launch.instances.size());
  size_t last = std::min<size_t>(first + program.count, launch.instances.size());
  for (size_t index = first; index < last; ++index) {
    const TimelineScope &scope = launch.instances[index];
    if (scope.scope >= launch.scope_names->size())
      continue;
    HeldEvent held;
    held.event.device = launch.device;
    held.event.node = nodes_.child(launch.kernel, (*launch.scope_names)[scope.scope]);
    held.event.start_ns = start_ns + rounded_ns(base_ps + cycle_picoseconds(scope.start_cycle, hz));
    held.event.end_ns =
        start_ns + rounded_ns(base_ps + cycle_picoseconds(scope.start_cycle + scope.cycles, hz));
    clip(held.event, launch);
    held.track = {TrackKind::kWarp, launch.device, warp_number(program.processor, scope.warp)};
    if (scope.warp == scope.end_warp) {
      hold(held);
      continue;
    }
    HeldEvent end = held;
    held.link = end.link = kLink | ++links_;
    held.event.end_ns = held.event.start_ns;
    end.event.start_ns = end.event.end_ns;
    end.is_link_end = true;
    end.track.number = warp_number(program.processor, scope.end_warp);
    hold(held);
    hold(end);
  }
}

// Programs go to tracks of processors, scopes to tracks of their warps.
void EventEncoder::add_programs(const TimelineLaunch &launch) {
  int64_t offset_ns = timer_offset_ns(launch);
  auto monotonic = [offset_ns](uint64_t timer_ns) {
    return static_cast<int64_t>(timer_ns - static_cast<uint64_t>(offset_ns));
  };
  for (const TimelineProgram &program : launch.programs) {
    EventValues values{{{Name("program"), std::to_string(program.program)}}};
    HeldEvent held;
    held.event.kind = EventKind::kKernel;
    held.event.device = launch.device;
    held.event.node = launch.kernel;
    held.event.start_ns = monotonic(program.init_ns);
    held.event.end_ns = monotonic(std::max(program.init_ns, program.post_final_ns));
    clip(held.event, launch);
    held.track = {TrackKind::kProcessor, launch.device, program.processor};
    held.values = &values;
    hold(held);
    add_scopes(launch, program, monotonic(program.init_ns));
  }
}

} // namespace proton
