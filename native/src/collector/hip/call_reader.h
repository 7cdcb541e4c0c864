// Reads the parameters of HIP calls. `Layout` names a library's structures, which have the same
// fields in other places.
#pragma once

#include <algorithm>
#include <iterator>

#include "collector/hip/call_form.h"
#include "driver/hip/hip_abi.h"

namespace proton {

template <typename Layout> class HipCallReader {
public:
  static HipApiCall read(HipCallForm form, const void *parameters) noexcept {
    HipApiCall call;
    if (!read_launch(form, parameters, call) && !read_graph_use(form, parameters, call) &&
        is_copy(form)) {
      call.kind = HipCallKind::kCopy;
      if (form == HipCallForm::kCopyAsync)
        call.stream = as<typename Layout::CopyAsyncParams>(parameters).stream;
      else if (form == HipCallForm::kSetAsync)
        call.stream = as<typename Layout::SetAsyncParams>(parameters).stream;
    }
    return call;
  }

private:
  template <typename Parameters> static const Parameters &as(const void *parameters) noexcept {
    return *static_cast<const Parameters *>(parameters);
  }

  static void set_shape(HipApiCall &call, const unsigned (&grid)[3],
                        const unsigned (&block)[3]) noexcept {
    for (size_t axis = 0; axis < 3; ++axis) {
      call.block[axis] = block[axis];
      call.work_items[axis] = grid[axis] * block[axis];
    }
  }

  /// A launch in one of the forms that differ by their last parameters only.
  template <typename Parameters>
  static void read_shape(HipApiCall &call, const Parameters &parameters) noexcept {
    set_shape(call, parameters.grid, parameters.block);
    call.stream = parameters.stream;
  }

  static bool read_launch(HipCallForm form, const void *parameters, HipApiCall &call) noexcept {
    call.kind = HipCallKind::kKernel;
    switch (form) {
    case HipCallForm::kModule:
      call.function = as<typename Layout::ModuleLaunchParams>(parameters).function;
      read_shape(call, as<typename Layout::ModuleLaunchParams>(parameters));
      return true;
    case HipCallForm::kLaunch:
      call.is_host_function = true;
      call.function = as<typename Layout::LaunchKernelParams>(parameters).host_function;
      read_shape(call, as<typename Layout::LaunchKernelParams>(parameters));
      return true;
    case HipCallForm::kCooperative:
      call.is_host_function = true;
      call.function = as<typename Layout::CooperativeLaunchParams>(parameters).host_function;
      read_shape(call, as<typename Layout::CooperativeLaunchParams>(parameters));
      return true;
    case HipCallForm::kExtModule: {
      const auto &launch = as<typename Layout::ExtModuleLaunchParams>(parameters);
      call.function = launch.function;
      call.stream = launch.stream;
      std::copy(std::begin(launch.work_items), std::end(launch.work_items), call.work_items);
      std::copy(std::begin(launch.block), std::end(launch.block), call.block);
      return true;
    }
    case HipCallForm::kLaunchEx: {
      const auto &launch = as<typename Layout::LaunchKernelExParams>(parameters);
      call.is_host_function = true;
      call.function = launch.host_function;
      if (launch.config)
        read_shape(call, as<hip::LaunchConfig>(launch.config));
      return true;
    }
    case HipCallForm::kDrvLaunchEx: {
      const auto &launch = as<typename Layout::DrvLaunchKernelExParams>(parameters);
      call.function = launch.function;
      if (launch.config)
        read_shape(call, as<hip::DriverLaunchConfig>(launch.config));
      return true;
    }
    case HipCallForm::kOtherLaunch:
      return true;
    default:
      call.kind = HipCallKind::kOther;
      return false;
    }
  }

  static bool read_graph_use(HipCallForm form, const void *parameters, HipApiCall &call) noexcept {
    switch (form) {
    case HipCallForm::kGraphLaunch:
      call.kind = HipCallKind::kGraphLaunch;
      call.executable = as<typename Layout::GraphLaunchParams>(parameters).graph_exec;
      call.stream = as<typename Layout::GraphLaunchParams>(parameters).stream;
      return true;
    case HipCallForm::kBeginCaptureToGraph:
      call.graph = as<typename Layout::StreamBeginCaptureParams>(parameters).graph;
      [[fallthrough]];
    case HipCallForm::kBeginCapture:
      call.kind = HipCallKind::kCaptureBegin;
      call.stream = as<typename Layout::StreamBeginCaptureParams>(parameters).stream;
      return true;
    case HipCallForm::kEndCapture:
      call.kind = HipCallKind::kCaptureEnd;
      call.stream = as<typename Layout::StreamEndCaptureParams>(parameters).stream;
      call.made = as<typename Layout::StreamEndCaptureParams>(parameters).graph;
      return true;
    default:
      return read_graph_change(form, parameters, call);
    }
  }

  static bool read_graph_change(HipCallForm form, const void *parameters,
                                HipApiCall &call) noexcept {
    switch (form) {
    case HipCallForm::kClone:
      call.kind = HipCallKind::kGraphClone;
      call.graph = as<typename Layout::GraphCloneParams>(parameters).original;
      call.made = as<typename Layout::GraphCloneParams>(parameters).clone;
      return true;
    case HipCallForm::kAddChild:
      call.kind = HipCallKind::kGraphChild;
      call.graph = as<typename Layout::GraphAddChildNodeParams>(parameters).graph;
      call.child = as<typename Layout::GraphAddChildNodeParams>(parameters).child;
      return true;
    case HipCallForm::kAddKernel:
      read_kernel_node(call, as<typename Layout::GraphAddKernelNodeParams>(parameters));
      return true;
    case HipCallForm::kDestroy:
      call.kind = HipCallKind::kGraphDestroy;
      call.graph = as<typename Layout::GraphParams>(parameters).graph;
      return true;
    case HipCallForm::kInstantiate:
      call.kind = HipCallKind::kExecutableMake;
      call.graph = as<typename Layout::GraphInstantiateParams>(parameters).graph;
      call.made = as<typename Layout::GraphInstantiateParams>(parameters).graph_exec;
      return true;
    case HipCallForm::kExecUpdate:
      call.kind = HipCallKind::kExecutableUpdate;
      call.executable = as<typename Layout::GraphExecUpdateParams>(parameters).graph_exec;
      call.graph = as<typename Layout::GraphExecUpdateParams>(parameters).graph;
      return true;
    case HipCallForm::kExecDestroy:
      call.kind = HipCallKind::kExecutableDestroy;
      call.executable = as<typename Layout::GraphParams>(parameters).graph;
      return true;
    default:
      return false;
    }
  }

  static void read_kernel_node(HipApiCall &call,
                               const typename Layout::GraphAddKernelNodeParams &node) noexcept {
    call.kind = HipCallKind::kGraphKernel;
    call.is_host_function = true;
    call.graph = node.graph;
    if (!node.parameters)
      return;
    const auto &kernel = as<hip::KernelNodeParams>(node.parameters);
    call.function = kernel.function;
    set_shape(call, kernel.grid, kernel.block);
  }
};

} // namespace proton
