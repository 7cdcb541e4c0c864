#include "collector/rocprofiler/hip_payload.h"

#include <cstring>

#include "collector/hip/call_reader.h"
#include "driver/rocprofiler/rocprofiler_hip_calls.h"

namespace proton {
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
