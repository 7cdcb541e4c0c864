#include "collector/instrumentation/decoder/timeline_rows.h"

#include <algorithm>
#include <limits>

namespace proton {

void TimelineRows::begin_program(const BlockHeader &header) {
  TimelineProgram &program = programs.emplace_back();
  program.program = header.program;
  program.processor = header.processor;
  program.init_ns = header.init_ns;
  program.pre_final_ns = header.pre_final_ns;
  program.post_final_ns = header.post_final_ns;
  program.is_lossy = header.is_lossy;
  program.first = static_cast<uint32_t>(instances.size());
}

void TimelineRows::instance(const BlockHeader &, const ScopeInstance &instance) {
  TimelineScope &scope = instances.emplace_back();
  // Otherwise a scope could seem to begin after the shortened one around it has ended.
  scope.start_cycle = instance.start_clock - instance.shift_cycles;
  scope.cycles = instance.cycles;
  scope.warp = static_cast<uint16_t>(instance.warp);
  scope.end_warp = static_cast<uint16_t>(instance.end_warp);
  scope.scope = static_cast<uint8_t>(instance.scope);
  scope.is_async = instance.is_async;
}

void TimelineRows::end_program(const BlockHeader &) {
  TimelineProgram &program = programs.back();
  program.count = static_cast<uint32_t>(instances.size()) - program.first;
  std::span<TimelineScope> own = std::span(instances).subspan(program.first);
  if (own.empty())
    return;
  // Clocks wrap: from half a turn before any of them they can be compared.
  uint64_t begin = own.front().start_cycle - (clock_mask_ / 2 + 1);
  uint64_t first = std::numeric_limits<uint64_t>::max();
  for (TimelineScope &scope : own) {
    scope.start_cycle = (scope.start_cycle - begin) & clock_mask_;
    first = std::min(first, scope.start_cycle);
  }
  for (TimelineScope &scope : own) {
    scope.start_cycle -= first;
    program.last_cycle = std::max(program.last_cycle, scope.start_cycle + scope.cycles);
  }
}

void TimelineRows::clear() {
  programs.clear();
  instances.clear();
}

} // namespace proton
