// The kernels of reduce_records.cu as PTX, which the driver compiles when it loads them.
#pragma once

namespace proton {

extern const char kDeviceCode[];

inline constexpr const char *kReduceFunction = "proton_bench_reduce";
inline constexpr const char *kHarvestFunction = "proton_bench_harvest";
inline constexpr const char *kAnchorFunction = "proton_bench_anchor";

} // namespace proton
