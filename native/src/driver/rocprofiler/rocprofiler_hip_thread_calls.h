// HIP calls whose null stream is the thread's own (hip..._spt), as rocprofiler-sdk numbers them.
// Programs that are compiled with -fgpu-default-stream=per-thread use them. Compared with AMD's
// headers, where they are found, by a test (tests/native/driver).
#pragma once

#include <cstdint>

namespace proton::rocprofiler {

/// The numbers between the first and the last are all of such calls; the parameters are those of
/// the calls without "_spt".
enum HipThreadCall : int32_t { // rocprofiler_hip_runtime_api_id_t
  kHipMemcpySpt = 390,
  kHipMemcpy2DSpt = 393,
  kHipMemcpy3DSpt = 395,
  kHipMemsetSpt = 396,
  kHipMemsetAsyncSpt = 397,
  kHipMemset2DSpt = 398,
  kHipMemset2DAsyncSpt = 399,
  kHipMemset3DAsyncSpt = 400,
  kHipMemset3DSpt = 401,
  kHipMemcpyAsyncSpt = 402,
  kHipMemcpy3DAsyncSpt = 403,
  kHipMemcpy2DAsyncSpt = 404,
  kHipLaunchCooperativeKernelSpt = 418,
  kHipLaunchKernelSpt = 419,
  kHipGraphLaunchSpt = 420,
  kHipStreamBeginCaptureSpt = 421,
  kHipStreamEndCaptureSpt = 422,
};

} // namespace proton::rocprofiler
