// The timeline of one launch, in true time: cycles of a multiprocessor are placed between the times
// that its clock and the device's nanosecond timer had before and after the launch.
#pragma once

#include <cstddef>

#include "collector/instrumentation/decoder/host_decoder.h"
#include "collector/instrumentation/timeline/timeline_copies.h"

namespace proton {

class LaunchTimeline final : public BufferVisitor {
public:
  /// Reads the launch's copied buffer; `kernel` must live longer.
  LaunchTimeline(const InstrumentedKernel &kernel, const TimelineLayout &layout,
                 const std::byte *buffer);

  void decode();
  /// Instead of `decode`: only counts what headers say.
  void leave_out();

  /// Valid while the timeline lives; without place and device.
  TimelineRecord record() const;
  /// Clock of the multiprocessors while the launch ran; 0 if it is not known.
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
