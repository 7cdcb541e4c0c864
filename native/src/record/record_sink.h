// Where collectors hand over their records. Every function is noexcept: it may be called from C.
#pragma once

#include <cstdint>
#include <span>

#include "record/record.h"

namespace proton {

class RecordSink {
public:
  virtual ~RecordSink() = default;
  /// Notes a launch of the calling thread and returns its epoch; 0 when no session is active, and
  /// its record must not come then. [launching thread, no lock]
  virtual EpochId launched(uint64_t correlation_id) noexcept = 0;
  /// The launch call failed: no record will come. [any thread]
  virtual void failed(uint64_t correlation_id) noexcept = 0;
  /// Kernels that ran; joined with their launches by correlation id. [any thread] locks
  virtual void complete(std::span<const KernelRecord> kernels) noexcept = 0;
  /// Records were lost. [any thread] locks
  virtual void dropped(const DroppedRecord &record) noexcept = 0;
};

/// A correlation id that no vendor library uses: collectors without ids of their own take these.
uint64_t next_correlation_id() noexcept;

} // namespace proton
