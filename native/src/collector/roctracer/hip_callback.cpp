#include "collector/roctracer/hip_callback.h"

#include "collector/hip/call_reader.h"
#include "driver/roctracer/roctracer_hip_calls.h"

namespace proton {
namespace {

using namespace roctracer;

struct Layout {
  using LaunchKernelParams = roctracer::LaunchKernelParams;
  using CooperativeLaunchParams = roctracer::CooperativeLaunchParams;
  using ModuleLaunchParams = roctracer::ModuleLaunchParams;
  using ExtModuleLaunchParams = roctracer::ExtModuleLaunchParams;
  using GraphLaunchParams = roctracer::GraphLaunchParams;
  using StreamBeginCaptureParams = roctracer::StreamBeginCaptureParams;
  using StreamEndCaptureParams = roctracer::StreamEndCaptureParams;
  using GraphInstantiateParams = roctracer::GraphInstantiateParams;
  using GraphParams = roctracer::GraphParams;
  using GraphExecUpdateParams = roctracer::GraphExecUpdateParams;
  using GraphCloneParams = roctracer::GraphCloneParams;
  using GraphAddChildNodeParams = roctracer::GraphAddChildNodeParams;
  using GraphAddKernelNodeParams = roctracer::GraphAddKernelNodeParams;
  using CopyAsyncParams = roctracer::CopyAsyncParams;
  using SetAsyncParams = roctracer::SetAsyncParams;
  // After the configuration comes a copy of it, then the function.
  struct LaunchKernelExParams {
    const void *config;
    hip::LaunchConfig config_value;
    const void *host_function;
  };
  struct DrvLaunchKernelExParams {
    const void *config;
    hip::DriverLaunchConfig config_value;
    const void *function;
  };
};

constexpr HipOperation kOperations[] = {
    {kHipExtLaunchKernel, HipCallForm::kLaunch},
    {kHipExtLaunchMultiKernelMultiDevice, HipCallForm::kOtherLaunch},
    {kHipLaunchByPtr, HipCallForm::kOtherLaunch},
    {kHipLaunchCooperativeKernel, HipCallForm::kCooperative},
    {kHipLaunchCooperativeKernelMultiDevice, HipCallForm::kOtherLaunch},
    {kHipLaunchKernel, HipCallForm::kLaunch},
    {kHipModuleLaunchCooperativeKernel, HipCallForm::kModule},
    {kHipModuleLaunchCooperativeKernelMultiDevice, HipCallForm::kOtherLaunch},
    {kHipModuleLaunchKernel, HipCallForm::kModule},
    {kHipExtModuleLaunchKernel, HipCallForm::kExtModule},
    {kHipHccModuleLaunchKernel, HipCallForm::kExtModule},
    {kHipLaunchKernelExC, HipCallForm::kLaunchEx},
    {kHipDrvLaunchKernelEx, HipCallForm::kDrvLaunchEx},
    {kHipGraphLaunch, HipCallForm::kGraphLaunch},
    {kHipGraphAddChildGraphNode, HipCallForm::kAddChild},
    {kHipGraphAddKernelNode, HipCallForm::kAddKernel},
    {kHipGraphClone, HipCallForm::kClone},
    {kHipGraphDestroy, HipCallForm::kDestroy},
    {kHipGraphExecDestroy, HipCallForm::kExecDestroy},
    {kHipGraphExecUpdate, HipCallForm::kExecUpdate},
    {kHipGraphInstantiate, HipCallForm::kInstantiate},
    {kHipGraphInstantiateWithFlags, HipCallForm::kInstantiate},
    {kHipGraphInstantiateWithParams, HipCallForm::kInstantiate},
    {kHipStreamBeginCapture, HipCallForm::kBeginCapture},
    {kHipStreamBeginCaptureToGraph, HipCallForm::kBeginCaptureToGraph},
    {kHipStreamEndCapture, HipCallForm::kEndCapture},
    {kHipMemcpy, HipCallForm::kCopy},
    {kHipMemcpy2D, HipCallForm::kCopy},
    {kHipMemcpy2DAsync, HipCallForm::kCopy},
    {kHipMemcpy3D, HipCallForm::kCopy},
    {kHipMemcpy3DAsync, HipCallForm::kCopy},
    {kHipMemcpyAsync, HipCallForm::kCopyAsync},
    {kHipMemcpyDtoD, HipCallForm::kCopy},
    {kHipMemcpyDtoDAsync, HipCallForm::kCopy},
    {kHipMemcpyDtoH, HipCallForm::kCopy},
    {kHipMemcpyDtoHAsync, HipCallForm::kCopy},
    {kHipMemcpyHtoD, HipCallForm::kCopy},
    {kHipMemcpyHtoDAsync, HipCallForm::kCopy},
    {kHipMemcpyPeer, HipCallForm::kCopy},
    {kHipMemcpyPeerAsync, HipCallForm::kCopy},
    {kHipMemcpyWithStream, HipCallForm::kCopyAsync},
    {kHipMemset, HipCallForm::kCopy},
    {kHipMemset2D, HipCallForm::kCopy},
    {kHipMemset2DAsync, HipCallForm::kCopy},
    {kHipMemset3D, HipCallForm::kCopy},
    {kHipMemset3DAsync, HipCallForm::kCopy},
    {kHipMemsetAsync, HipCallForm::kSetAsync},
    {kHipMemsetD16, HipCallForm::kCopy},
    {kHipMemsetD16Async, HipCallForm::kCopy},
    {kHipMemsetD32, HipCallForm::kCopy},
    {kHipMemsetD32Async, HipCallForm::kCopy},
    {kHipMemsetD8, HipCallForm::kCopy},
    {kHipMemsetD8Async, HipCallForm::kCopy},
};

const HipOperationTable &table() {
  static const auto *operations = new HipOperationTable(kOperations); // calls come at any time
  return *operations;
}

} // namespace

std::vector<int> roctracer_operations(bool copies) { return table().numbers(copies); }

bool is_graph_operation(int operation) noexcept { return changes_graphs(table().find(operation)); }

HipApiCall read_roctracer_call(uint32_t operation, const void *data) noexcept {
  return HipCallReader<Layout>::read(table().find(static_cast<int>(operation)),
                                     static_cast<const char *>(data) + kHipParameters);
}

} // namespace proton
