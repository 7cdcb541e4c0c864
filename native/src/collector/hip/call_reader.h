// Reads the parameters of HIP calls. `Layout` names a library's structures, which have the same
// fields in other places.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "driver/hip/hip_abi.h"

namespace proton {

// The forms that the parameters of HIP calls have; several calls share one.

enum class HipCallForm : uint8_t {
  kNone,
  kLaunch,
  kCooperative,
  kModule,
  kExtModule,
  kLaunchEx,
  kDrvLaunchEx,
  kOtherLaunch, ///< several kernels, or one whose shape another call gave
  kGraphLaunch,
  kBeginCapture,
  kBeginCaptureToGraph,
  kEndCapture,
  kInstantiate,
  kExecUpdate,
  kExecDestroy,
  kDestroy,
  kClone,
  kAddChild,
  kAddKernel,
  kCopy,
  kCopyAsync, ///< with a stream
  kSetAsync,
};

inline bool is_copy(HipCallForm form) noexcept { return form >= HipCallForm::kCopy; }

/// Whether the call makes, changes or destroys a graph, or begins or ends its capture.
inline bool changes_graphs(HipCallForm form) noexcept {
  return form >= HipCallForm::kBeginCapture && form <= HipCallForm::kAddKernel;
}

/// A call that is listened to, by its library's number.
struct HipOperation {
  int number;
  HipCallForm form;
};

/// Number -> form, for calls that are listened to.
class HipOperationTable {
public:
  explicit HipOperationTable(std::span<const HipOperation> operations) : operations_(operations) {
    int most = 0;
    for (const HipOperation &each : operations)
      most = std::max(most, each.number);
    forms_.resize(static_cast<size_t>(most) + 1);
    for (const HipOperation &each : operations)
      forms_[static_cast<size_t>(each.number)] = each.form;
  }
  HipCallForm find(int number) const noexcept {
    auto place = static_cast<size_t>(number);
    return place < forms_.size() ? forms_[place] : HipCallForm::kNone;
  }
  /// Numbers to listen to.
  std::vector<int> numbers(bool copies) const {
    std::vector<int> chosen;
    for (const HipOperation &each : operations_)
      if (copies || !is_copy(each.form))
        chosen.push_back(each.number);
    return chosen;
  }

private:
  std::span<const HipOperation> operations_;
  std::vector<HipCallForm> forms_;
};

// A HIP call as both of AMD's libraries report it, whatever their structures look like.

enum class HipCallKind : uint8_t {
  kOther,
  kKernel,
  kCopy,   ///< or a setting of memory
  kCopies, ///< a batch of them
  kGraphLaunch,
  kCaptureBegin, ///< into `graph`, or a new one where that is null
  kCaptureEnd,   ///< made a graph
  kGraphClone,   ///< made a graph of `graph`
  kGraphChild,   ///< a node of `graph` that runs `child`
  kGraphKernel,  ///< a kernel node of `graph`, without a capture
  kGraphDestroy,
  kExecutableMake, ///< made an executable graph of `graph`
  kExecutableUpdate,
  kExecutableDestroy,
};

struct HipApiCall {
  HipCallKind kind = HipCallKind::kOther;
  bool is_host_function = false; ///< `function` stands for the kernel on every device
  void *stream = nullptr;
  const void *function = nullptr; ///< null where the call does not say
  uint32_t work_items[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  void *graph = nullptr;
  void *child = nullptr;
  void *executable = nullptr;
  void *const *made = nullptr; ///< where the handle of what was made stands on exit
};

/// Whether the call launches work that may become a node of a graph instead.
inline bool is_work(HipCallKind kind) noexcept {
  return kind == HipCallKind::kKernel || kind == HipCallKind::kCopy || kind == HipCallKind::kCopies;
}

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
