#include "collector/rocprofiler/record_stream.h"

#include <algorithm>
#include <iterator>

namespace proton {
namespace {

namespace sdk = rocprofiler;

const char *copy_name(int operation) noexcept {
  static constexpr const char *kNames[] = {"<memcpy>", "<memcpy H2H>", "<memcpy H2D>",
                                           "<memcpy D2H>", "<memcpy D2D>"};
  bool is_known = operation > 0 && static_cast<size_t>(operation) < std::size(kNames);
  return kNames[is_known ? static_cast<size_t>(operation) : 0];
}

} // namespace

void RocprofilerRecords::read(std::span<sdk::RecordHeader *> headers, uint64_t dropped) noexcept {
  uint64_t more = 0;
  records_.read([&](RecordBatch &batch) {
    more = dropped - std::min(dropped, dropped_before_);
    dropped_before_ += more;
    for (const sdk::RecordHeader *header : headers) {
      if (!header || header->category != sdk::kCategoryTracing || !header->payload)
        continue;
      if (header->kind == sdk::kBufferKernelDispatch)
        read_dispatch(*static_cast<const sdk::DispatchRecord *>(header->payload), batch);
      else if (header->kind == sdk::kBufferMemoryCopy)
        read_copy(*static_cast<const sdk::CopyRecord *>(header->payload), batch);
    }
  });
  records_.count_dropped(more);
}

void RocprofilerRecords::read_dispatch(const sdk::DispatchRecord &record, RecordBatch &batch) {
  const sdk::DispatchInfo &info = record.dispatch;
  const KernelSymbol *symbol = symbols_.find(info.kernel);
  HipDispatch dispatch;
  dispatch.correlation = record.correlation.internal;
  dispatch.tag = record.correlation.external.value;
  dispatch.name = symbol ? symbol->name.c_str() : nullptr;
  std::copy(std::begin(info.work_items), std::end(info.work_items), dispatch.work_items);
  std::copy(std::begin(info.block), std::end(info.block), dispatch.block);
  dispatch.shared_bytes = info.group_segment_bytes;
  dispatch.registers = symbol ? symbol->registers : 0;
  dispatch.device = agents_.ordinal(info.agent, *devices_);
  dispatch.queue = static_cast<uint32_t>(info.queue);
  dispatch.order = info.dispatch;
  dispatch.start_ns = record.start_ns;
  dispatch.end_ns = record.end_ns;
  records_.add(dispatch, batch);
}

void RocprofilerRecords::read_copy(const sdk::CopyRecord &record, RecordBatch &batch) {
  HipCopy copy;
  copy.correlation = record.correlation.internal;
  copy.tag = record.correlation.external.value;
  copy.name = copy_name(record.operation);
  copy.bytes = record.bytes;
  // The GPU of the two; between GPUs the one that is written to.
  int target = agents_.ordinal(record.target_agent, *devices_);
  copy.device = target >= 0 ? target : agents_.ordinal(record.source_agent, *devices_);
  copy.start_ns = record.start_ns;
  copy.end_ns = record.end_ns;
  records_.add(copy, batch);
}

} // namespace proton
