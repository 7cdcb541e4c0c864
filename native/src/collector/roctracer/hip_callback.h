// HIP calls as roctracer's callbacks carry them.
#pragma once

#include <cstdint>
#include <vector>

#include "collector/hip/hip_call.h"

namespace proton {

/// Calls to listen to, as of rocprofiler-sdk (collector/rocprofiler/hip_payload.h).
std::vector<int> roctracer_operations(bool copies);
/// Whether the call changes what is known of graphs.
bool is_graph_operation(int operation) noexcept;
/// `data` is that of a callback of kDomainHipApi.
HipApiCall read_roctracer_call(uint32_t operation, const void *data) noexcept;

} // namespace proton
