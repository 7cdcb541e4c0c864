// The parameters of HIP calls as a profiler library hands them over. `Layout` names the library's
// structures, which have the same fields in other places.
#pragma once

#include <algorithm>
#include <cstring>

#include "tracer.h"

namespace fake {

/// Longest parameters, with room to spare.
inline constexpr size_t kParameterBytes = 128;

template <typename Parameters> void put(const Parameters &parameters, char *to) {
  static_assert(sizeof parameters <= kParameterBytes);
  std::memcpy(to, &parameters, sizeof parameters);
}

template <typename Launch> Launch launch_of(const HipCall &call) {
  Launch launch{};
  if constexpr (requires { launch.host_function; })
    launch.host_function = call.function;
  else
    launch.function = call.function;
  for (size_t axis = 0; axis < 3; ++axis) {
    if constexpr (requires { launch.work_items; })
      launch.work_items[axis] = call.grid[axis] * call.block[axis];
    else
      launch.grid[axis] = call.grid[axis];
    launch.block[axis] = call.block[axis];
  }
  launch.shared_bytes = call.shared_bytes;
  launch.stream = call.stream;
  return launch;
}

template <typename Config> Config config_of(const HipCall &call) {
  Config config{};
  std::copy(call.grid, call.grid + 3, config.grid);
  std::copy(call.block, call.block + 3, config.block);
  config.shared_bytes = call.shared_bytes;
  config.stream = call.stream;
  return config;
}

/// Writes the parameters of a launch; `call` keeps what they point to.
template <typename Layout> bool put_launch(HipCall &call, char *to) {
  switch (call.kind) {
  case CallKind::kLaunch:
  case CallKind::kExtLaunch:
    put(launch_of<typename Layout::LaunchKernelParams>(call), to);
    return true;
  case CallKind::kCooperative:
    put(launch_of<typename Layout::CooperativeLaunchParams>(call), to);
    return true;
  case CallKind::kModuleLaunch:
  case CallKind::kModuleCooperative:
    put(launch_of<typename Layout::ModuleLaunchParams>(call), to);
    return true;
  case CallKind::kExtModuleLaunch:
    put(launch_of<typename Layout::ExtModuleLaunchParams>(call), to);
    return true;
  case CallKind::kLaunchExC: {
    call.config = config_of<hip::LaunchConfig>(call);
    typename Layout::LaunchKernelExParams parameters{};
    parameters.config = &call.config;
    Layout::set_function(parameters, call);
    put(parameters, to);
    return true;
  }
  case CallKind::kDrvLaunchEx: {
    call.driver_config = config_of<hip::DriverLaunchConfig>(call);
    typename Layout::DrvLaunchKernelExParams parameters{};
    parameters.config = &call.driver_config;
    Layout::set_function(parameters, call);
    put(parameters, to);
    return true;
  }
  default:
    return false;
  }
}

template <typename Layout> void put_graph_call(HipCall &call, char *to) {
  switch (call.kind) {
  case CallKind::kBeginCapture:
    put(typename Layout::StreamBeginCaptureParams{call.stream, nullptr}, to);
    break;
  case CallKind::kEndCapture:
    put(typename Layout::StreamEndCaptureParams{call.stream, call.out}, to);
    break;
  case CallKind::kInstantiate: {
    typename Layout::GraphInstantiateParams parameters{};
    parameters.graph_exec = call.out;
    parameters.graph = call.graph;
    put(parameters, to);
    break;
  }
  case CallKind::kGraphLaunch:
    put(typename Layout::GraphLaunchParams{call.exec, call.stream}, to);
    break;
  case CallKind::kGraphUpdate:
    put(typename Layout::GraphExecUpdateParams{call.exec, call.graph}, to);
    break;
  case CallKind::kGraphClone: {
    typename Layout::GraphCloneParams parameters{};
    parameters.clone = call.out;
    parameters.original = call.graph;
    put(parameters, to);
    break;
  }
  case CallKind::kAddChild: {
    typename Layout::GraphAddChildNodeParams parameters{};
    parameters.node = call.out;
    parameters.graph = call.graph;
    parameters.child = call.exec;
    put(parameters, to);
    break;
  }
  case CallKind::kAddKernel: {
    call.node.function = call.function;
    typename Layout::GraphAddKernelNodeParams parameters{};
    parameters.node = call.out;
    parameters.graph = call.graph;
    parameters.parameters = &call.node;
    put(parameters, to);
    break;
  }
  case CallKind::kGraphDestroy:
    put(typename Layout::GraphParams{call.graph}, to);
    break;
  case CallKind::kExecDestroy:
    put(typename Layout::GraphParams{call.exec}, to);
    break;
  default:
    break;
  }
}

template <typename Layout> void put_parameters(HipCall &call, char *to) {
  if (put_launch<Layout>(call, to))
    return;
  if (call.kind == CallKind::kCopy)
    put(typename Layout::CopyAsyncParams{nullptr, nullptr, call.bytes, call.copy_kind, call.stream},
        to);
  else if (call.kind == CallKind::kSet)
    put(typename Layout::SetAsyncParams{nullptr, 0, call.bytes, call.stream}, to);
  else
    put_graph_call<Layout>(call, to);
}

} // namespace fake
