#include "collector/rocprofiler/hip_payload.h"

#include <cstring>

#include "collector/hip/call_reader.h"
#include "driver/rocprofiler/rocprofiler_hip_calls.h"
#include "driver/rocprofiler/rocprofiler_hip_thread_calls.h"

namespace proton {
namespace {

using namespace rocprofiler;

struct Layout {
  using LaunchKernelParams = rocprofiler::LaunchKernelParams;
  using CooperativeLaunchParams = rocprofiler::CooperativeLaunchParams;
  using ModuleLaunchParams = rocprofiler::ModuleLaunchParams;
  using ExtModuleLaunchParams = rocprofiler::ExtModuleLaunchParams;
  using LaunchKernelExParams = rocprofiler::LaunchKernelExParams;
  using DrvLaunchKernelExParams = rocprofiler::DrvLaunchKernelExParams;
  using GraphLaunchParams = rocprofiler::GraphLaunchParams;
  using StreamBeginCaptureParams = rocprofiler::StreamBeginCaptureParams;
  using StreamEndCaptureParams = rocprofiler::StreamEndCaptureParams;
  using GraphInstantiateParams = rocprofiler::GraphInstantiateParams;
  using GraphParams = rocprofiler::GraphParams;
  using GraphExecUpdateParams = rocprofiler::GraphExecUpdateParams;
  using GraphCloneParams = rocprofiler::GraphCloneParams;
  using GraphAddChildNodeParams = rocprofiler::GraphAddChildNodeParams;
  using GraphAddKernelNodeParams = rocprofiler::GraphAddKernelNodeParams;
  using CopyAsyncParams = rocprofiler::CopyAsyncParams;
  using SetAsyncParams = rocprofiler::SetAsyncParams;
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
    {kHipMemcpyParam2D, HipCallForm::kCopy},
    {kHipMemcpyParam2DAsync, HipCallForm::kCopy},
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
    {kHipMemcpySpt, HipCallForm::kCopy},
    {kHipMemcpy2DSpt, HipCallForm::kCopy},
    {kHipMemcpy3DSpt, HipCallForm::kCopy},
    {kHipMemsetSpt, HipCallForm::kCopy},
    {kHipMemsetAsyncSpt, HipCallForm::kSetAsync},
    {kHipMemset2DSpt, HipCallForm::kCopy},
    {kHipMemset2DAsyncSpt, HipCallForm::kCopy},
    {kHipMemset3DAsyncSpt, HipCallForm::kCopy},
    {kHipMemset3DSpt, HipCallForm::kCopy},
    {kHipMemcpyAsyncSpt, HipCallForm::kCopyAsync},
    {kHipMemcpy3DAsyncSpt, HipCallForm::kCopy},
    {kHipMemcpy2DAsyncSpt, HipCallForm::kCopy},
    {kHipLaunchCooperativeKernelSpt, HipCallForm::kCooperative},
    {kHipLaunchKernelSpt, HipCallForm::kLaunch},
    {kHipGraphLaunchSpt, HipCallForm::kGraphLaunch},
    {kHipStreamBeginCaptureSpt, HipCallForm::kBeginCapture},
    {kHipStreamEndCaptureSpt, HipCallForm::kEndCapture},
};

const HipOperationTable &table() {
  static const auto *operations = new HipOperationTable(kOperations); // calls come at any time
  return *operations;
}

} // namespace

std::vector<int> traced_operations(bool copies) { return table().numbers(copies); }

HipApiCall read_hip_call(int operation, const void *payload) noexcept {
  HipApiCall call = HipCallReader<Layout>::read(
      table().find(operation), static_cast<const char *>(payload) + kHipParameters);
  bool is_of_thread = operation >= kHipMemcpySpt && operation <= kHipStreamEndCaptureSpt;
  if (is_of_thread && !call.stream)
    call.stream = reinterpret_cast<void *>(hip::kStreamPerThread);
  return call;
}

bool has_failed(const void *payload) noexcept {
  hip::Result result = hip::kSuccess;
  std::memcpy(&result, static_cast<const char *>(payload) + kHipParameters + kHipParametersBytes,
              sizeof result);
  return result != hip::kSuccess;
}

} // namespace proton
