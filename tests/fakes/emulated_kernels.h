// The kernels of device/reduce_records.cu as the host runs them: the code of the device, warp by
// warp and lane by lane.
#pragma once

#include <cstdint>
#include <vector>

#include "collector/instrumentation/device/reduce_task.h"
#include "collector/instrumentation/device/warp_reduction.h"

namespace emulated {

namespace device = proton::device;

/// `shared_bytes` as for the launch: there is no memory beyond.
inline void reduce_block(const device::ReduceTask &task, uint32_t block, uint32_t blocks,
                         uint32_t threads, uint32_t shared_bytes) {
  std::vector<uint64_t> shared((shared_bytes + 7) / 8, 0xa5a5a5a5a5a5a5a5);
  std::vector<device::WarpReduction> warps;
  for (uint32_t warp = 0; warp < threads / device::kLanes; ++warp)
    warps.emplace_back(task, reinterpret_cast<unsigned char *>(shared.data()),
                       device::WarpReduction::Place{block, blocks, warp, threads / device::kLanes});
  for (device::WarpReduction &warp : warps)
    warp.clear();
  for (device::WarpReduction &warp : warps)
    warp.read();
  for (device::WarpReduction &warp : warps)
    warp.finish();
  for (device::WarpReduction &warp : warps)
    warp.flush();
}

inline void reduce(const device::ReduceTask &task, uint32_t blocks, uint32_t threads,
                   uint32_t shared_bytes) {
  for (uint32_t block = 0; block < blocks; ++block)
    reduce_block(task, block, blocks, threads, shared_bytes);
}

inline void harvest(const device::HarvestTask &task) {
  for (uint64_t i = 0; i < task.words; ++i)
    task.to[i] = device::exchange(task.totals + i, 0);
}

/// A clock of 2 GHz on every multiprocessor, where the timer says so.
inline void anchor(const device::AnchorTask &task, uint64_t timer_ns) {
  for (uint32_t i = 0; i < task.processors; ++i)
    task.anchors[i] = {timer_ns * 2 + i * 7, timer_ns};
}

} // namespace emulated
