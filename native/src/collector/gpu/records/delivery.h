// Waits until all work that was launched before is recorded.
#pragma once

#include <cstdint>

#include "record/record_sink.h"

namespace proton {

inline constexpr uint32_t kOpenCallsMs = 1000;

/// What `deliver` needs of a vendor's library.
class RecordSource {
public:
  virtual ~RecordSource() = default;
  /// Waits for all work of every device that something was launched on.
  virtual void wait_for_devices() noexcept = 0;
  /// Asks the library for the records of work that is over.
  virtual void hand_over_records() noexcept = 0;
  /// Records that the library said it dropped.
  virtual uint64_t dropped() const noexcept = 0;
};

struct Delivered {
  uint64_t newest = 0;    ///< id of the work that was launched before
  bool is_waited = false; ///< that work is over; else more records of it may come
};

/// While a thread captures a graph, this waits for the records only: see DeviceWait.
Delivered deliver(RecordSink &sink, RecordSource &source);

} // namespace proton
