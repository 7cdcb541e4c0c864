// Records on their way to the sink, handed over in spans.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "record/record_sink.h"

namespace proton {

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
