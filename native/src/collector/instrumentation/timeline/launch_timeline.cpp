#include "collector/instrumentation/timeline/launch_timeline.h"

#include <cmath>

#include "collector/instrumentation/decoder/scope_pairs.h"

namespace proton {

LaunchTimeline::LaunchTimeline(const InstrumentedKernel &kernel, const TimelineLayout &layout,
                               const std::byte *buffer)
    : kernel_(kernel), records_(buffer, layout.records_bytes), processors_(layout.processors),
      before_(reinterpret_cast<const device::ClockAnchor *>(buffer + layout.before_at())),
      after_(reinterpret_cast<const device::ClockAnchor *>(buffer + layout.after_at())),
      clock_mask_(clock_mask(kernel.has_short_clock)), rows_(kernel.has_short_clock) {
  measure_clock();
}

void LaunchTimeline::decode() {
  KernelTotals totals{};
  proton::decode(records_, kernel_.layout(), *this, totals);
}

void LaunchTimeline::leave_out() {
  const BufferLayout layout = kernel_.layout();
  uint64_t records = 0;
  for (auto left = records_; left.size() >= layout.scratch_bytes;
       left = left.subspan(layout.scratch_bytes)) {
    BlockReader block(left.first(layout.scratch_bytes), layout);
    if (block.state() != BlockState::kWritten || !is_kept(block.header().program))
      continue;
    for (uint32_t index = 0; index < layout.segments(); ++index)
      records += block.segment(index).size();
  }
  left_out_ = records / 2;
}

/// All multiprocessors share one clock, so their sum is better than the timer's resolution.
void LaunchTimeline::measure_clock() {
  double cycles = 0, ns = 0;
  for (uint32_t i = 0; i < processors_; ++i) {
    bool is_whole = before_[i].cycles != 0 && after_[i].cycles > before_[i].cycles &&
                    after_[i].ns > before_[i].ns;
    if (!is_whole)
      continue;
    cycles += static_cast<double>(after_[i].cycles - before_[i].cycles);
    ns += static_cast<double>(after_[i].ns - before_[i].ns);
  }
  clock_hz_ = ns > 0 ? cycles / ns * 1e9 : 0;
}

bool LaunchTimeline::is_kept(uint32_t program) const {
  bool is_kept = kernel_.programs.empty();
  for (auto [first, last] : kernel_.programs)
    is_kept |= program >= first && program <= last;
  return is_kept;
}

void LaunchTimeline::begin_program(const BlockHeader &header) { rows_.begin_program(header); }

void LaunchTimeline::instance(const BlockHeader &header, const ScopeInstance &instance) {
  rows_.instance(header, instance);
  newest_start_ = instance.start_clock - instance.shift_cycles;
}

void LaunchTimeline::end_program(const BlockHeader &header) {
  rows_.end_program(header);
  TimelineProgram &program = rows_.programs.back();
  if (!is_kept(header.program)) {
    rows_.instances.resize(program.first);
    rows_.programs.pop_back();
    return;
  }
  if (program.count == 0)
    return;
  TimelineScope *scopes = rows_.instances.data() + program.first;
  uint64_t origin = newest_start_ - scopes[program.count - 1].start_cycle;
  uint64_t offset = cycles_since_init(header, origin & clock_mask_);
  for (uint32_t i = 0; i < program.count; ++i)
    scopes[i].start_cycle += offset;
  program.last_cycle += offset;
}

uint64_t LaunchTimeline::cycles_since_init(const BlockHeader &header, uint64_t clock) const {
  if (header.processor >= processors_ || after_[header.processor].cycles == 0 || clock_hz_ <= 0)
    return 0;
  const device::ClockAnchor &after = after_[header.processor];
  uint64_t cycles_before_anchor = (after.cycles - clock) & clock_mask_;
  uint64_t ns_before_anchor = after.ns - header.init_ns;
  double span = static_cast<double>(ns_before_anchor) * clock_hz_ / 1e9;
  // Records of a program are later than its first time; a broken header must not move it far.
  double offset = span - static_cast<double>(cycles_before_anchor);
  constexpr double kMostCycles = 1e12;
  return offset > 0 && offset < kMostCycles ? static_cast<uint64_t>(std::llround(offset)) : 0;
}

TimelineRecord LaunchTimeline::record() const {
  TimelineRecord record;
  record.kernel = kernel_.name.c_str();
  record.clock_hz = static_cast<uint64_t>(std::llround(clock_hz_));
  record.scopes = kernel_.scopes;
  record.programs = rows_.programs;
  record.instances = rows_.instances;
  record.left_out = left_out_;
  return record;
}

} // namespace proton
