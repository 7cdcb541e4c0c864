#include "collector/cupti/callbacks/callbacks.h"

#include <utility>

#include "collector/gpu/launches/launch_thread.h"
#include "driver/cuda/cuda_driver.h"
#include "driver/own_work.h"

namespace proton {
namespace {

/// The function that the call launches; null if its parameters do not say.
const void *launched_function(uint32_t cbid, const cupti::CallbackData &call) noexcept {
  if (!call.function_params)
    return nullptr;
  bool is_ex = cbid == cupti::kCuLaunchKernelEx || cbid == cupti::kCuLaunchKernelExPtsz;
  if (is_ex)
    return static_cast<const cuda::LaunchKernelExParams *>(call.function_params)->function;
  return static_cast<const cuda::LaunchKernelParams *>(call.function_params)->function;
}

} // namespace

void KernelCalls::handle(int, uint32_t cbid, const void *data) noexcept {
  const auto &call = *static_cast<const cupti::CallbackData *>(data);
  if (call.site == cupti::kEnter)
    enter_launch(log_, call, LaunchKind::kKernel, codes_.find(launched_function(cbid, call)));
  else
    leave_launch(log_, call);
}

void CopyCalls::handle(int, uint32_t cbid, const void *data) noexcept {
  const auto &call = *static_cast<const cupti::CallbackData *>(data);
  if (call.site == cupti::kEnter)
    enter_launch(log_, call,
                 cupti::is_batch_of_copies(cbid) ? LaunchKind::kCopies : LaunchKind::kCopy, 0);
  else
    leave_launch(log_, call);
}

void MemoryCalls::handle(int, uint32_t cbid, const void *data) noexcept {
  LaunchThread *thread = this_launch_thread();
  if (!thread)
    return;
  // An earlier call whose end was not reported is over too.
  abandon_range(std::exchange(thread->memory_call, {}));
  if (static_cast<const cupti::CallbackData *>(data)->site != cupti::kEnter || is_own_work())
    return;
  for (const cupti::MemoryCall &call : cupti::kMemoryCalls)
    if (call.cbid == cbid)
      thread->memory_call = enter_range(call.name, FrameKind::kContextOp);
}

void Resources::handle(int, uint32_t cbid, const void *data) noexcept {
  const auto &resource = *static_cast<const cupti::ResourceData *>(data);
  if (cbid == cupti::kContextDestroyStarting)
    log_.contexts().forget(resource.context);
  else if (const auto *module = static_cast<const cupti::ModuleResourceData *>(resource.descriptor))
    note_code(*module);
}

void Resources::note_code(const cupti::ModuleResourceData &module) noexcept {
  auto get_crc = library_.load(std::memory_order_acquire)->functions().get_cubin_crc;
  if (!module.cubin || !get_crc)
    return;
  try {
    cupti::CubinCrcParameters parameters;
    parameters.cubin_size = module.cubin_size;
    parameters.cubin = module.cubin;
    if (get_crc(&parameters) != cupti::kSuccess)
      return; // its kernels stay without a hash
    for (std::string_view kernel : kernels_of_cubin(module.cubin, module.cubin_size))
      codes_.set_name(kernel, parameters.crc);
  } catch (...) { // no memory: the rest of its kernels stays without a hash
  }
}

} // namespace proton
