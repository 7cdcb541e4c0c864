#include "collector/cupti/pc_sampling/pc_sources.h"

#include <iterator>

#include "collector/gpu/launches/launch_thread.h"
#include "driver/cupti/cupti_abi.h"

namespace proton {

std::vector<uint32_t> PcResourceSource::callbacks() const {
  using namespace cupti;
  return {kContextCreated, kContextDestroyStarting, kModuleLoaded, kModuleUnloadStarting};
}

void PcResourceSource::handle(uint32_t cbid, const void *data) noexcept {
  const auto &resource = *static_cast<const cupti::ResourceData *>(data);
  const auto *module = static_cast<const cupti::ModuleResourceData *>(resource.descriptor);
  switch (cbid) {
  case cupti::kContextCreated:
    sampler_.context_created(resource.context);
    return;
  case cupti::kContextDestroyStarting:
    contexts_.handle(cbid, data); // so that it is not taken over once more
    sampler_.context_ending(resource.context);
    return;
  case cupti::kModuleLoaded:
    modules_.handle(cbid, data);
    if (module)
      sampler_.module_loaded(resource.context, *module);
    return;
  default:
    if (module)
      sampler_.module_ending(resource.context, *module);
  }
}

std::vector<uint32_t> PcCallSource::callbacks() const {
  return {std::begin(cupti::kModuleCalls), std::end(cupti::kModuleCalls)};
}

void PcCallSource::handle(uint32_t, const void *data) noexcept {
  LaunchThread *thread = this_launch_thread();
  if (!thread)
    return; // no memory: it is not held back
  if (static_cast<const cupti::CallbackData *>(data)->site == cupti::kEnter)
    enter_call(*thread);
  else
    thread->leave();
}

std::vector<uint32_t> PcLaunchSource::callbacks() const {
  std::vector<uint32_t> calls = kernels_.callbacks();
  calls.push_back(cupti::kCuGraphLaunch);
  calls.push_back(cupti::kCuGraphLaunchPtsz);
  return calls;
}

void PcLaunchSource::handle(uint32_t cbid, const void *data) noexcept {
  const auto &call = *static_cast<const cupti::CallbackData *>(data);
  bool is_graph = cbid == cupti::kCuGraphLaunch || cbid == cupti::kCuGraphLaunchPtsz;
  CallbackSource &inner = is_graph ? graphs_ : kernels_;
  if (call.site == cupti::kEnter)
    sampler_.launch_begins(call.context);
  inner.handle(cbid, data);
  if (call.site != cupti::kEnter)
    sampler_.launch_ended(call.context, is_graph);
}

} // namespace proton
