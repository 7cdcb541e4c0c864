#include "collector/cupti/launch_source.h"

#include <iterator>

#include "context/current.h"
#include "driver/cuda_abi.h"
#include "driver/cupti_copy_calls.h"
#include "driver/own_work.h"
#include "support/clock.h"

namespace proton {
namespace {

constexpr int64_t kLongestCallNs = 1'000'000'000;

/// The function that the call launches; null where its parameters do not say.
const void *launched_function(uint32_t cbid, const cupti::CallbackData &call) noexcept {
  if (!call.function_params)
    return nullptr;
  bool is_ex = cbid == cupti::kCuLaunchKernelEx || cbid == cupti::kCuLaunchKernelExPtsz;
  if (is_ex)
    return static_cast<const cuda::LaunchKernelExParams *>(call.function_params)->function;
  return static_cast<const cuda::LaunchKernelParams *>(call.function_params)->function;
}

} // namespace

void LaunchLog::arm() noexcept {
  armed_ns_.store(monotonic_ns(), std::memory_order_relaxed);
  is_armed_.store(true, std::memory_order_release);
}

void LaunchLog::observe(int64_t now_ns) noexcept {
  int64_t armed_ns = armed_ns_.load(std::memory_order_relaxed);
  if (settled_since_ns_ == armed_ns)
    return;
  bool is_settled = now_ns - armed_ns > kLongestCallNs;
  settled_from_ = is_settled ? ids_.above_all() : 0;
  settled_since_ns_ = is_settled ? armed_ns : 0;
}

void LaunchLog::enter(const cupti::CallbackData &call, LaunchKind kind, uint32_t code) noexcept {
  LaunchThread *thread = this_launch_thread();
  if (!thread) {
    sink_.dropped({"no memory for a launching thread", 1, true});
    return;
  }
  enter_call(*thread);
  thread->launch_id = 0;
  if (!is_armed_.load(std::memory_order_acquire))
    return;
  uint64_t id = ids_.widen_newest(call.correlation_id);
  contexts_.note(*thread, call.context);
  thread->is_kernel = kind == LaunchKind::kKernel;
  thread->is_captured = false;
  thread->launch_id = id;
  if (is_own_work() && kind != LaunchKind::kGraph) // graphs are the target's
    sink_.launched_own(id, kind);
  else
    sink_.launched(id, kind, code);
}

void LaunchLog::leave(const cupti::CallbackData &call) noexcept {
  LaunchThread *thread = this_launch_thread();
  if (!thread)
    return;
  if (thread->launch_id != 0 && (thread->is_captured || has_failed(call)))
    sink_.retracted(thread->launch_id);
  else if (thread->launch_id != 0 && situation().wants_timeline)
    sink_.returned(thread->launch_id);
  thread->launch_id = 0;
  thread->leave();
}

bool LaunchLog::captured() noexcept {
  LaunchThread *thread = this_launch_thread();
  if (!thread || thread->launch_id == 0)
    return false;
  thread->is_captured = true;
  return thread->is_kernel;
}

std::vector<uint32_t> LaunchSource::callbacks() const {
  using namespace cupti;
  return {kCuLaunch,
          kCuLaunchGrid,
          kCuLaunchGridAsync,
          kCuLaunchKernel,
          kCuLaunchKernelPtsz,
          kCuLaunchKernelEx,
          kCuLaunchKernelExPtsz,
          kCuLaunchCooperativeKernel,
          kCuLaunchCooperativeKernelPtsz,
          kCuLaunchCooperativeKernelMultiDevice};
}

void LaunchSource::handle(uint32_t cbid, const void *data) noexcept {
  const auto &call = *static_cast<const cupti::CallbackData *>(data);
  if (call.site == cupti::kEnter)
    log_.enter(call, LaunchKind::kKernel, codes_.find(launched_function(cbid, call)));
  else
    log_.leave(call);
}

std::vector<uint32_t> CopySource::callbacks() const {
  return {std::begin(cupti::kCopyCalls), std::end(cupti::kCopyCalls)};
}

void CopySource::handle(uint32_t cbid, const void *data) noexcept {
  const auto &call = *static_cast<const cupti::CallbackData *>(data);
  if (call.site == cupti::kEnter)
    log_.enter(call, cupti::is_batch_of_copies(cbid) ? LaunchKind::kCopies : LaunchKind::kCopy, 0);
  else
    log_.leave(call);
}

void ResourceSource::handle(uint32_t, const void *data) noexcept {
  log_.contexts().forget(static_cast<const cupti::ResourceData *>(data)->context);
}

} // namespace proton
