// HIP calls as rocprofiler-sdk's callbacks carry them.
#pragma once

#include <vector>

#include "collector/hip/hip_call.h"

namespace proton {

/// Calls to listen to: those that launch kernels, those that make and change graphs, and those
/// that copy or set memory if asked for.
std::vector<int> traced_operations(bool copies);
/// `payload` is that of a callback of kCallbackHipRuntimeApi.
HipApiCall read_hip_call(int operation, const void *payload) noexcept;
/// Whether a call that ended says that it failed.
bool has_failed(const void *payload) noexcept;

} // namespace proton
