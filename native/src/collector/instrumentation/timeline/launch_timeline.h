// The timeline of one launch, in true time: cycles of a multiprocessor are placed between what its
// clock and the device's nanosecond timer said before and after the launch.
#pragma once

#include <cstddef>

#include "collector/instrumentation/decoder/timeline_rows.h"
#include "collector/instrumentation/timeline/trace_copies.h"

namespace proton {

class LaunchTimeline final : public BufferVisitor {
public:
  /// Of the launch's copied buffer; `kernel` outlives it.
  LaunchTimeline(const InstrumentedKernel &kernel, const TraceLayout &layout,
                 const std::byte *buffer);

  void decode();
  /// Only counts what headers tell of, in place of `decode`.
  void leave_out();

  /// Valid as long as the timeline is; without place and device.
  TimelineRecord record() const;
  /// Of the multiprocessors while the launch ran; 0: their clocks are not known.
  double clock_hz() const { return clock_hz_; }

  void begin_program(const BlockHeader &header) override;
  void instance(const BlockHeader &header, const ScopeInstance &instance) override;
  void end_program(const BlockHeader &header) override;

private:
  void measure_clock();
  bool is_kept(uint32_t program) const;
  /// Cycles from the program's first time to a clock of one of its records.
  uint64_t cycles_since_init(const BlockHeader &header, uint64_t clock) const;

  const InstrumentedKernel &kernel_;
  std::span<const std::byte> records_;
  uint32_t processors_;
  const device::ClockAnchor *before_;
  const device::ClockAnchor *after_;
  uint64_t clock_mask_;
  double clock_hz_ = 0;
  TimelineRows rows_;
  uint64_t left_out_ = 0;     ///< instances
  uint64_t newest_start_ = 0; ///< clock as the device read it
};

} // namespace proton
