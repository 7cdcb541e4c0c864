#include "collector/rocprofiler/record_stream.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "collector/hip/call_reader.h"
#include "collector/hip/hip_records.h"
#include "driver/hip/hsa_runtime.h"
#include "driver/rocprofiler/rocprofiler_abi.h"
#include "driver/rocprofiler/rocprofiler_hip_calls.h"

namespace proton {
namespace {

using rocprofiler::read_agent;
namespace at = rocprofiler::agent_offset;

/// As ROCR_VISIBLE_DEVICES takes it: of the number's bytes the first is the lowest.
std::string uuid_text(const void *agent) {
  auto number = read_agent<uint64_t>(agent, at::kUuid);
  if (number == 0)
    return {};
  char text[24];
  std::snprintf(text, sizeof text, "GPU-%016" PRIx64, number);
  return text;
}

} // namespace

rocprofiler::Status Agents::take(int, const void **agents, size_t count, void *self) noexcept {
  try {
    auto &gpus = static_cast<Agents *>(self)->gpus_;
    gpus.clear();
    for (size_t i = 0; i < count; ++i) {
      const void *agent = agents[i];
      if (read_agent<uint64_t>(agent, at::kSize) < rocprofiler::kAgentBytes)
        return rocprofiler::kErrorIncompatibleAbi;
      if (read_agent<int>(agent, at::kType) != rocprofiler::kAgentGpu)
        continue;
      Gpu gpu{read_agent<uint64_t>(agent, at::kId),
              read_agent<int32_t>(agent, at::kLogicalNodeOfType),
              {uuid_text(agent), pci_text(read_agent<uint32_t>(agent, at::kPciDomain),
                                          read_agent<uint32_t>(agent, at::kLocation))}};
      gpus.push_back(std::move(gpu));
    }
    std::stable_sort(gpus.begin(), gpus.end(),
                     [](const Gpu &left, const Gpu &right) { return left.order < right.order; });
    return rocprofiler::kSuccess;
  } catch (...) { // no memory
    return rocprofiler::kErrorOutOfResources;
  }
}

void Agents::list(const RocprofilerLibrary &library) {
  library.check(library.functions().query_available_agents(rocprofiler::kAgentVersion0, take,
                                                           rocprofiler::kAgentBytes, this),
                "rocprofiler_query_available_agents");
}

void Agents::map(const HipDevices &devices) {
  std::vector<GpuIdentity> identities;
  for (const Gpu &gpu : gpus_)
    identities.push_back(gpu.identity);
  std::vector<int> ordinals = ordinals_by_identity(identities, devices.identities());
  if (ordinals.empty())
    ordinals = ordinals_by_variables(identities, VisibleVariables::of_environment());
  for (size_t i = 0; i < gpus_.size(); ++i)
    gpus_[i].ordinal = ordinals[i];
  is_mapped_ = true;
}

int Agents::ordinal(uint64_t agent, const HipDevices &devices) {
  if (!is_mapped_)
    map(devices);
  for (const Gpu &gpu : gpus_)
    if (gpu.handle == agent)
      return gpu.ordinal;
  return -1;
}

void KernelSymbols::add(const rocprofiler::KernelSymbolData &symbol) {
  auto added = std::make_unique<KernelSymbol>();
  if (symbol.name)
    added->name.assign(symbol.name, plain_length(symbol.name));
  added->registers = symbol.vector_registers;
  std::lock_guard lock(mutex_);
  symbols_.try_emplace(symbol.kernel, std::move(added));
}

const KernelSymbol *KernelSymbols::find(uint64_t kernel) const {
  std::lock_guard lock(mutex_);
  auto found = symbols_.find(kernel);
  return found == symbols_.end() ? nullptr : found->second.get();
}

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

namespace {

struct Layout {
#define PROTON_HIP_USE(parameters) using parameters = rocprofiler::parameters;
  PROTON_HIP_PARAMETERS(PROTON_HIP_USE)
#undef PROTON_HIP_USE
};

#define PROTON_HIP_OPERATION(name, form, ...) {rocprofiler::kHip##name, HipCallForm::form},
#define PROTON_HIP_THREAD_OPERATION(name, form, ...)                                               \
  {rocprofiler::kHip##name##Spt, HipCallForm::form},
// clang-format off
constexpr HipOperation kOperations[] = {
    PROTON_HIP_CALLS(PROTON_HIP_OPERATION)
    PROTON_HIP_SDK_CALLS(PROTON_HIP_OPERATION)
    PROTON_HIP_THREAD_CALLS(PROTON_HIP_THREAD_OPERATION)
};
// clang-format on
#undef PROTON_HIP_OPERATION
#undef PROTON_HIP_THREAD_OPERATION

const HipOperationTable &table() {
  static const auto *operations = new HipOperationTable(kOperations); // calls come at any time
  return *operations;
}

} // namespace

std::vector<int> traced_operations(bool copies) { return table().numbers(copies); }

HipApiCall read_hip_call(int operation, const void *payload) noexcept {
  HipApiCall call = HipCallReader<Layout>::read(
      table().find(operation), static_cast<const char *>(payload) + rocprofiler::kHipParameters);
  bool is_of_thread =
      operation >= rocprofiler::kFirstHipThreadCall && operation <= rocprofiler::kLastHipThreadCall;
  if (is_of_thread && !call.stream)
    call.stream = reinterpret_cast<void *>(hip::kStreamPerThread);
  return call;
}

bool has_failed(const void *payload) noexcept {
  hip::Result result = hip::kSuccess;
  std::memcpy(&result,
              static_cast<const char *>(payload) + rocprofiler::kHipParameters +
                  rocprofiler::kHipParametersBytes,
              sizeof result);
  return result != hip::kSuccess;
}

} // namespace proton
