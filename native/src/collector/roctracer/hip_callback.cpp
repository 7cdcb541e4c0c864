#include "collector/roctracer/hip_callback.h"

#include "collector/hip/call_reader.h"
#include "driver/roctracer/roctracer_hip_calls.h"

namespace proton {
namespace {

struct Layout {
#define PROTON_HIP_USE(parameters) using parameters = roctracer::parameters;
  PROTON_HIP_PARAMETERS(PROTON_HIP_USE)
#undef PROTON_HIP_USE
};

#define PROTON_HIP_OPERATION(name, form, ...) {roctracer::kHip##name, HipCallForm::form},
constexpr HipOperation kOperations[] = {PROTON_HIP_CALLS(PROTON_HIP_OPERATION)};
#undef PROTON_HIP_OPERATION

const HipOperationTable &table() {
  static const auto *operations = new HipOperationTable(kOperations); // calls come at any time
  return *operations;
}

} // namespace

std::vector<int> roctracer_operations(bool copies) { return table().numbers(copies); }

bool is_graph_operation(int operation) noexcept { return changes_graphs(table().find(operation)); }

HipApiCall read_roctracer_call(uint32_t operation, const void *data) noexcept {
  return HipCallReader<Layout>::read(table().find(static_cast<int>(operation)),
                                     static_cast<const char *>(data) + roctracer::kHipParameters);
}

} // namespace proton
