// Waits until all work that was launched before is recorded.
#pragma once

#include <array>
#include <cstddef>
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

// Records on their way to the sink, handed over in spans.

/// Filled by the readers of one activity buffer; kernels and copies may come in any order.
class RecordBatch {
public:
  explicit RecordBatch(RecordSink &sink) : sink_(sink) {}
  ~RecordBatch() { hand_over(); }
  RecordBatch(const RecordBatch &) = delete;
  RecordBatch &operator=(const RecordBatch &) = delete;

  KernelRecord &next_kernel() noexcept {
    if (kernel_count_ == kernels_.size())
      hand_over();
    return kernels_[kernel_count_++] = KernelRecord{};
  }
  CopyRecord &next_copy() noexcept {
    if (copy_count_ == copies_.size())
      hand_over();
    return copies_[copy_count_++] = CopyRecord{};
  }
  void hand_over() noexcept {
    if (kernel_count_ != 0)
      sink_.complete(std::span<const KernelRecord>(kernels_.data(), kernel_count_));
    if (copy_count_ != 0)
      sink_.complete(std::span<const CopyRecord>(copies_.data(), copy_count_));
    kernel_count_ = copy_count_ = 0;
  }
  RecordSink &sink() { return sink_; }

private:
  RecordSink &sink_;
  std::array<KernelRecord, 256> kernels_;
  size_t kernel_count_ = 0;
  std::array<CopyRecord, 32> copies_;
  size_t copy_count_ = 0;
};

} // namespace proton
