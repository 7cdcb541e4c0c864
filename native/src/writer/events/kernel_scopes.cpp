#include "writer/events/kernel_scopes.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

namespace proton {
namespace {

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

int64_t KernelScopes::timer_offset_ns(const TimelineLaunch &launch, int64_t now_ns) {
  if (launch.timer.is_known())
    return static_cast<int64_t>(-static_cast<uint64_t>(launch.timer.offset_ns));
  auto found = offsets_ns_.find(launch.device);
  if (found != offsets_ns_.end())
    return found->second;
  uint64_t first = UINT64_MAX;
  for (const TimelineProgram &program : launch.programs)
    first = std::min(first, program.init_ns);
  auto offset = static_cast<int64_t>(first - static_cast<uint64_t>(now_ns));
  uint64_t distance = static_cast<uint64_t>(offset) - static_cast<uint64_t>(unix_offset_ns_);
  if (static_cast<int64_t>(distance) < kFarNs && static_cast<int64_t>(distance) > -kFarNs)
    offset = unix_offset_ns_;
  offsets_ns_.emplace(launch.device, offset);
  return offset;
}

void KernelScopes::add_scopes(const TimelineLaunch &launch, const TimelineProgram &program,
                              int64_t start_ns, EventNodes &nodes, HeldEvents &to) {
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
    held.event.node = nodes.child(launch.kernel, (*launch.scope_names)[scope.scope]);
    held.event.start_ns = start_ns + rounded_ns(base_ps + cycle_picoseconds(scope.start_cycle, hz));
    held.event.end_ns =
        start_ns + rounded_ns(base_ps + cycle_picoseconds(scope.start_cycle + scope.cycles, hz));
    clip(held.event, launch);
    held.track = {TrackKind::kWarp, launch.device, warp_number(program.processor, scope.warp)};
    if (scope.warp == scope.end_warp) {
      to.add(held);
      continue;
    }
    HeldEvent end = held;
    held.link = end.link = kLink | ++links_;
    held.event.end_ns = held.event.start_ns;
    end.event.start_ns = end.event.end_ns;
    end.is_link_end = true;
    end.track.number = warp_number(program.processor, scope.end_warp);
    to.add(held);
    to.add(end);
  }
}

void KernelScopes::add(const TimelineLaunch &launch, int64_t now_ns, EventNodes &nodes,
                       HeldEvents &to) {
  int64_t offset_ns = timer_offset_ns(launch, now_ns);
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
    to.add(held);
    add_scopes(launch, program, monotonic(program.init_ns), nodes, to);
  }
}

} // namespace proton
