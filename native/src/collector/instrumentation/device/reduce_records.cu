// The kernels that run beside instrumented ones. make_ptx.py compiles this file to
// reduce_records.ptx, which is what the runtime loads.
#include "collector/instrumentation/device/warp_reduction.h"

using namespace proton::device;

extern "C" __global__ void __launch_bounds__(256)
    proton_bench_reduce(const __grid_constant__ ReduceTask task) {
  extern __shared__ __align__(16) unsigned char shared[];
  WarpReduction reduction(task, shared,
                          {blockIdx.x, gridDim.x, threadIdx.x / kLanes, blockDim.x / kLanes});
  reduction.clear();
  __syncthreads();
  reduction.read();
  __syncthreads();
  reduction.finish();
  __syncthreads();
  reduction.flush();
}

extern "C" __global__ void __launch_bounds__(256)
    proton_bench_harvest(const __grid_constant__ HarvestTask task) {
  uint64_t step = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < task.words; i += step)
    task.to[i] = exchange(task.totals + i, 0);
}

/// There are more blocks than multiprocessors, so that each multiprocessor runs one.
extern "C" __global__ void __launch_bounds__(32)
    proton_bench_anchor(const __grid_constant__ AnchorTask task) {
  uint32_t processor;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(processor));
  uint64_t cycles, ns;
  asm volatile("mov.u64 %0, %%clock64;\n\tmov.u64 %1, %%globaltimer;" : "=l"(cycles), "=l"(ns));
  if (threadIdx.x == 0 && processor < task.processors) {
    task.anchors[processor].cycles = cycles;
    task.anchors[processor].ns = ns;
  }
}
