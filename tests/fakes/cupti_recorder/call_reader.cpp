#include "call_reader.h"

#include <array>

namespace recording {

void CallReader::bind(void *library) {
  find(library, "cuptiGetGraphId", graph_id_);
  find(library, "cuptiGetGraphExecId", graph_exec_id_);
  find(library, "cuptiGetGraphNodeId", node_id_);
  find(library, "cuptiGetContextId", context_id_);
  find(library, "cuptiGetStreamIdEx", stream_id_);
  find(library, "cuptiGetCubinCrc", cubin_crc_);
}

void CallReader::read(StreamLog &log, int domain, uint32_t cbid, const void *data) {
  stream::Call call;
  call.domain = static_cast<uint8_t>(domain);
  call.cbid = cbid;
  bool is_wanted = true;
  if (domain == cupti::kDomainDriver || domain == cupti::kDomainRuntime)
    is_wanted = read_api(log, call, *static_cast<const cupti::CallbackData *>(data));
  else if (domain == cupti::kDomainResource)
    read_resource(log, call, *static_cast<const cupti::ResourceData *>(data));
  else if (domain == cupti::kDomainNvtx)
    read_nvtx(log, call, *static_cast<const cupti::NvtxData *>(data));
  if (is_wanted)
    log.call(call);
}

std::map<std::string, uint64_t> CallReader::unrecorded() {
  std::lock_guard lock(mutex_);
  return unrecorded_;
}

bool CallReader::is_recorded(std::string_view name) {
  static constexpr std::array kPrefixes = {
      "cuLaunch",    "cuGraph",      "cuStreamBegin",    "cuStreamEnd",     "cuMemcpy",
      "cuMemset",    "cudaLaunch",   "cudaGraphLaunch",  "cudaMemcpy",      "cudaMemset",
      "cuCtxCreate", "cuCtxDestroy", "cuCtxSynchronize", "cuThreadExchange"};
  for (std::string_view prefix : kPrefixes) {
    if (name.starts_with(prefix))
      return true;
  }
  return false;
}

bool CallReader::read_api(StreamLog &log, stream::Call &call, const cupti::CallbackData &data) {
  const std::string_view name = data.function_name == nullptr ? "" : data.function_name;
  if (!is_recorded(name)) {
    if (data.site == cupti::kEnter) {
      std::lock_guard lock(mutex_);
      ++unrecorded_[std::string(name)];
    }
    return false;
  }
  call.site = static_cast<uint8_t>(data.site);
  call.correlation = data.correlation_id;
  call.context_uid = data.context_uid;
  call.function = log.text(name);
  if (data.symbol_name != nullptr)
    call.symbol = log.text(data.symbol_name);
  if (data.site == cupti::kExit && data.function_return != nullptr)
    call.result = *static_cast<const int *>(data.function_return);
  if (call.domain == cupti::kDomainDriver && data.function_params != nullptr)
    read_parameters(log, call, data);
  return true;
}

void CallReader::read_parameters(StreamLog &log, stream::Call &call,
                                 const cupti::CallbackData &data) {
  switch (call.cbid) {
  case cupti::kCuLaunchKernel:
  case cupti::kCuLaunchKernelPtsz:
  case cupti::kCuLaunchCooperativeKernel:
  case cupti::kCuLaunchCooperativeKernelPtsz: {
    const auto &launch = *static_cast<const cuda::LaunchKernelParams *>(data.function_params);
    read_shape(log, call, launch, data.context);
    break;
  }
  case cupti::kCuLaunchKernelEx:
  case cupti::kCuLaunchKernelExPtsz: {
    const auto &launch = *static_cast<const cuda::LaunchKernelExParams *>(data.function_params);
    if (launch.config != nullptr)
      read_shape(log, call, *launch.config, data.context);
    break;
  }
  case cupti::kCuGraphLaunch:
  case cupti::kCuGraphLaunchPtsz: {
    const auto &launch = *static_cast<const cuda::GraphLaunchParams *>(data.function_params);
    call.graph_exec = id(graph_exec_id_, launch.graph_exec);
    call.stream = log.stream_number(launch.stream);
    break;
  }
  default:
    read_capture(log, call, data);
    break;
  }
}

void CallReader::read_capture(StreamLog &log, stream::Call &call, const cupti::CallbackData &data) {
  const bool is_done = call.site == cupti::kExit && call.result == cuda::kSuccess;
  switch (call.cbid) {
  case cupti::kCuStreamBeginCapture:
  case cupti::kCuStreamBeginCapturePtsz:
  case cupti::kCuStreamBeginCaptureV2:
  case cupti::kCuStreamBeginCaptureV2Ptsz:
  case cupti::kCuStreamBeginCaptureToGraph:
  case cupti::kCuStreamBeginCaptureToGraphPtsz:
    call.stream = log.stream_number(
        static_cast<const cuda::StreamBeginCaptureParams *>(data.function_params)->stream);
    if (is_done)
      ++captures_;
    break;
  case cupti::kCuStreamEndCapture:
  case cupti::kCuStreamEndCapturePtsz: {
    const auto &end = *static_cast<const cuda::StreamEndCaptureParams *>(data.function_params);
    call.stream = log.stream_number(end.stream);
    if (call.site == cupti::kExit && captures_ > 0)
      --captures_;
    if (is_done && end.graph != nullptr)
      call.graph = id(graph_id_, *end.graph);
    break;
  }
  case cupti::kCuGraphInstantiateV2:
  case cupti::kCuGraphInstantiateWithFlags:
  case cupti::kCuGraphInstantiateWithParams:
  case cupti::kCuGraphInstantiateWithParamsPtsz: {
    const auto &made = *static_cast<const cuda::GraphInstantiateParams *>(data.function_params);
    call.graph = id(graph_id_, made.graph);
    if (is_done && made.graph_exec != nullptr)
      call.graph_exec = id(graph_exec_id_, *made.graph_exec);
    break;
  }
  default:
    read_change(call, data);
    break;
  }
}

void CallReader::read_change(stream::Call &call, const cupti::CallbackData &data) {
  if (call.cbid == cupti::kCuGraphExecUpdate || call.cbid == cupti::kCuGraphExecUpdateV2) {
    const auto &update = *static_cast<const cuda::GraphExecUpdateParams *>(data.function_params);
    call.graph_exec = id(graph_exec_id_, update.graph_exec);
    call.graph = id(graph_id_, update.graph);
  } else if (call.cbid == cupti::kCuGraphAddChildGraphNode) {
    const auto &add = *static_cast<const cuda::GraphAddChildNodeParams *>(data.function_params);
    call.graph = id(graph_id_, add.graph);
    call.original_graph = id(graph_id_, add.child);
  } else if (call.cbid == cupti::kCuGraphClone) {
    const auto &clone = *static_cast<const cuda::GraphCloneParams *>(data.function_params);
    call.original_graph = id(graph_id_, clone.original);
  }
}

void CallReader::read_resource(StreamLog &log, stream::Call &call,
                               const cupti::ResourceData &data) {
  if (call.cbid <= cupti::kStreamDestroyStarting && context_id_ != nullptr &&
      data.context != nullptr)
    context_id_(data.context, &call.context_uid);
  if (call.cbid == cupti::kStreamCreated || call.cbid == cupti::kStreamDestroyStarting)
    call.stream = log.stream_number(data.handle);
  if (data.descriptor == nullptr)
    return;
  if (call.cbid >= cupti::kModuleLoaded && call.cbid <= cupti::kModuleProfiled)
    read_module(call, *static_cast<const cupti::ModuleResourceData *>(data.descriptor));
  else if (call.cbid >= cupti::kGraphCreated && call.cbid <= cupti::kGraphNodeCloned)
    read_graph(call, *static_cast<const cupti::GraphData *>(data.descriptor));
}

void CallReader::read_module(stream::Call &call, const cupti::ModuleResourceData &module) {
  call.module = module.module_id;
  call.cubin_size = module.cubin_size;
  if (cubin_crc_ == nullptr || module.cubin == nullptr || module.cubin_size == 0)
    return;
  cupti::CubinCrcParameters parameters;
  parameters.cubin = module.cubin;
  parameters.cubin_size = module.cubin_size;
  if (cubin_crc_(&parameters) == cupti::kSuccess)
    call.cubin_crc = parameters.crc;
}

void CallReader::read_graph(stream::Call &call, const cupti::GraphData &data) {
  const bool is_node =
      call.cbid >= cupti::kGraphNodeCreated && call.cbid <= cupti::kGraphNodeDestroyStarting;
  const bool is_exec =
      call.cbid >= cupti::kGraphExecCreateStarting && call.cbid <= cupti::kGraphExecDestroyStarting;
  const bool is_cloned = call.cbid == cupti::kGraphCloned || call.cbid == cupti::kGraphNodeCloned;
  if (call.cbid < cupti::kGraphNodeDependencyCreated || is_cloned ||
      call.cbid == cupti::kGraphExecCreateStarting || call.cbid == cupti::kGraphExecCreated)
    call.graph = id(graph_id_, data.graph);
  if (is_cloned)
    call.original_graph = id(graph_id_, data.original_graph);
  if (is_exec && call.cbid != cupti::kGraphExecCreateStarting)
    call.graph_exec = id(graph_exec_id_, data.graph_exec);
  if (is_node || call.cbid == cupti::kGraphNodeCloned) {
    call.node_type = data.node_type;
    if (node_id_ != nullptr && data.node != nullptr)
      node_id_(data.node, &call.node);
  }
  if (call.cbid == cupti::kGraphNodeCloned && node_id_ != nullptr && data.original_node != nullptr)
    node_id_(data.original_node, &call.original_node);
}

void CallReader::read_nvtx(StreamLog &log, stream::Call &call, const cupti::NvtxData &data) {
  if (data.function_name != nullptr)
    call.function = log.text(data.function_name);
  if (data.function_params == nullptr)
    return;
  if (call.cbid == cupti::kNvtxRangePushA) {
    const auto *push = static_cast<const cupti::NvtxRangePushAParams *>(data.function_params);
    if (push->message != nullptr)
      call.text = log.text(push->message);
  } else if (call.cbid == cupti::kNvtxRangePushEx || call.cbid == cupti::kNvtxDomainRangePushEx) {
    const void *attributes =
        call.cbid == cupti::kNvtxRangePushEx
            ? static_cast<const void *>(
                  static_cast<const cupti::NvtxRangePushExParams *>(data.function_params)
                      ->attributes)
            : static_cast<const cupti::NvtxDomainRangePushExParams *>(data.function_params)
                  ->core.attributes;
    read_attributes(log, call, attributes);
  }
}

void CallReader::read_attributes(StreamLog &log, stream::Call &call, const void *attributes) {
  if (attributes == nullptr ||
      cupti::read<int32_t>(attributes, cupti::nvtx_event_offset::kMessageType) !=
          cupti::kNvtxMessageAscii)
    return;
  const char *message = cupti::read<const char *>(attributes, cupti::nvtx_event_offset::kMessage);
  if (message != nullptr)
    call.text = log.text(message);
}

} // namespace recording
