#include "session/record_sink_abi.h"

#include <algorithm>
#include <vector>

#include "aggregate/consumer/aggregator.h"
#include "context/thread/current.h"

namespace proton {
namespace {

RecordSink &sink_of(void *self) { return *static_cast<Aggregator *>(self); }

uint64_t capture(void *self, pb_token *out) {
  if (out)
    *out = pb_token{};
  if (!session_state().active)
    return 0;
  uint64_t id = next_correlation_id();
  EpochId epoch = sink_of(self).launched(id);
  if (epoch == 0)
    return 0; // the last session was paused meanwhile
  if (out) {
    out->correlation_id = id;
    out->epoch = epoch;
  }
  return id;
}

void failed(void *self, uint64_t correlation_id) { sink_of(self).failed(correlation_id); }

VariantRecord convert(const pb_variant_record &from) {
  VariantRecord variant;
  variant.code_hash = from.code_hash;
  std::copy(std::begin(from.grid), std::end(from.grid), std::begin(variant.grid));
  std::copy(std::begin(from.block), std::end(from.block), std::begin(variant.block));
  variant.shared_bytes = from.shared_bytes;
  variant.signature = from.signature;
  return variant;
}

void complete_kernels(void *self, const pb_kernel_record *records, size_t count) {
  try {
    std::vector<KernelRecord> kernels(count);
    std::vector<VariantRecord> variants(count); // kernels point into it
    for (size_t i = 0; i < count; ++i) {
      const pb_kernel_record &from = records[i];
      KernelRecord &kernel = kernels[i];
      kernel.correlation_id = from.correlation_id;
      kernel.start_ns = from.start_ns;
      kernel.end_ns = from.end_ns;
      kernel.name = from.name;
      kernel.device_kind = from.device_kind ? from.device_kind : "UNKNOWN";
      kernel.device_index = from.device_index;
      kernel.stream = from.stream;
      if (from.variant) {
        variants[i] = convert(*from.variant);
        kernel.variant = &variants[i];
      }
    }
    sink_of(self).complete(kernels);
  } catch (...) { // no memory for the copies
    sink_of(self).dropped({"no memory for kernel records", count});
  }
}

void dropped(void *self, const char *reason, uint64_t count) {
  sink_of(self).dropped({reason, count});
}

} // namespace

const pb_record_sink *record_sink_abi() {
  static const pb_record_sink sink = {PB_RECORD_SINK_ABI_VERSION,
                                      sizeof(pb_record_sink),
                                      &Aggregator::instance(),
                                      capture,
                                      failed,
                                      complete_kernels,
                                      dropped};
  return &sink;
}

} // namespace proton
