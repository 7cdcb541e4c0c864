// The double of libamdhip64: the entry points that a profiler calls itself.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "device.h"
#include "graphs.h"
#include "handles.h"

using namespace fake;

namespace {

thread_local int current_device = 0;

bool is_device(int ordinal) {
  return ordinal >= 0 && static_cast<size_t>(ordinal) < device().gpus.size();
}

int attribute(int which) {
  switch (which) {
  case hip::kAttributeWarpSize:
    return 64;
  case hip::kAttributeClockRateKhz:
    return 2'100'000;
  case hip::kAttributeMultiprocessors:
    return 304;
  case hip::kAttributeMemoryClockRateKhz:
    return 1'300'000;
  case hip::kAttributeMemoryBusWidthBits:
    return 8192;
  case hip::kAttributeL2Bytes:
    return 4'194'304;
  case hip::kAttributeCapabilityMajor:
    return 9;
  default:
    return 1;
  }
}

const GraphNode *find_node(const void *node) {
  for (const auto &[graph, nodes] : graphs().graphs)
    for (const GraphNode &each : nodes)
      if (handle(kNodeHandle, each.id) == node)
        return &each;
  return nullptr;
}

} // namespace

FAKE_EXPORT int hipInit(unsigned) {
  FAULT(hipInit);
  fake_amd_start_runtime();
  return device().gpus.empty() ? hip::kErrorNoDevice : hip::kSuccess;
}

FAKE_EXPORT int hipRuntimeGetVersion(int *version) {
  FAULT(hipRuntimeGetVersion);
  *version = 70125424;
  return hip::kSuccess;
}

FAKE_EXPORT const char *hipGetErrorName(int result) {
  static thread_local char name[40];
  std::snprintf(name, sizeof name, "hipErrorFake%d", result);
  return name;
}

FAKE_EXPORT int hipGetDeviceCount(int *count) {
  FAULT(hipGetDeviceCount);
  fake_amd_start_runtime();
  *count = static_cast<int>(device().gpus.size());
  return device().gpus.empty() ? hip::kErrorNoDevice : hip::kSuccess;
}

FAKE_EXPORT int hipGetDevice(int *ordinal) {
  FAULT(hipGetDevice);
  *ordinal = current_device;
  return hip::kSuccess;
}

FAKE_EXPORT int hipSetDevice(int ordinal) {
  FAULT(hipSetDevice);
  if (!is_device(ordinal))
    return hip::kErrorInvalidDevice;
  current_device = ordinal;
  return hip::kSuccess;
}

FAKE_EXPORT int hipDeviceGet(int *handle, int ordinal) {
  FAULT(hipDeviceGet);
  *handle = ordinal;
  return is_device(ordinal) ? hip::kSuccess : hip::kErrorInvalidDevice;
}

FAKE_EXPORT int hipCtxGetDevice(int *ordinal) {
  FAULT(hipCtxGetDevice);
  *ordinal = current_device;
  return hip::kSuccess;
}

FAKE_EXPORT int hipDeviceGetName(char *name, int bytes, int ordinal) {
  FAULT(hipDeviceGetName);
  if (!is_device(ordinal))
    return hip::kErrorInvalidDevice;
  std::snprintf(name, static_cast<size_t>(bytes), "%s", kProduct);
  return hip::kSuccess;
}

FAKE_EXPORT int hipDeviceGetPCIBusId(char *text, int bytes, int ordinal) {
  FAULT(hipDeviceGetPCIBusId);
  if (!is_device(ordinal))
    return hip::kErrorInvalidDevice;
  const Gpu &gpu = device().gpus[static_cast<size_t>(ordinal)];
  std::snprintf(text, static_cast<size_t>(bytes), "%04x:%02x:%02x.%x", gpu.domain(),
                gpu.location() >> 8, gpu.location() >> 3 & 0x1f, gpu.location() & 7);
  return hip::kSuccess;
}

FAKE_EXPORT int hipDeviceGetAttribute(int *value, int which, int ordinal) {
  FAULT(hipDeviceGetAttribute);
  if (!is_device(ordinal))
    return hip::kErrorInvalidDevice;
  *value = attribute(which);
  return hip::kSuccess;
}

FAKE_EXPORT int hipGetDevicePropertiesR0600(void *properties, int ordinal) {
  FAULT(hipGetDevicePropertiesR0600);
  if (!is_device(ordinal))
    return hip::kErrorInvalidDevice;
  namespace at = hip::properties_offset;
  char *bytes = static_cast<char *>(properties);
  std::memset(bytes, 0, hip::kPropertiesBytes);
  std::snprintf(bytes + at::kName, hip::kPropertiesTextBytes, "%s", kProduct);
  std::snprintf(bytes + at::kArch, hip::kPropertiesTextBytes, "%s:sramecc+:xnack-", kArch);
  const std::string digits = device().gpus[static_cast<size_t>(ordinal)].uuid_digits();
  std::memcpy(bytes + at::kUuid, digits.data(), 16); // without an end
  return hip::kSuccess;
}

FAKE_EXPORT int hipDeviceSynchronize() {
  FAULT(hipDeviceSynchronize);
  fake_amd_release(static_cast<uint32_t>(current_device));
  return hip::kSuccess;
}

FAKE_EXPORT int hipStreamSynchronize(void *) {
  FAULT(hipStreamSynchronize);
  fake_amd_release(static_cast<uint32_t>(current_device));
  return hip::kSuccess;
}

FAKE_EXPORT int hipStreamIsCapturing(void *stream, int *status) {
  FAULT(hipStreamIsCapturing);
  *status = capture_graph(stream) != nullptr ? hip::kCaptureActive : hip::kCaptureNone;
  return hip::kSuccess;
}

FAKE_EXPORT int hipStreamGetCaptureInfo_v2(void *stream, int *status, unsigned long long *id,
                                           void **graph, void *const **dependencies,
                                           size_t *count) {
  FAULT(hipStreamGetCaptureInfo_v2);
  void *present = capture_graph(stream);
  *status = present != nullptr ? hip::kCaptureActive : hip::kCaptureNone;
  if (id != nullptr)
    *id = present != nullptr ? id_of(present) : 0;
  if (graph != nullptr)
    *graph = present;
  if (dependencies != nullptr)
    *dependencies = nullptr;
  if (count != nullptr)
    *count = 0;
  return hip::kSuccess;
}

FAKE_EXPORT int hipThreadExchangeStreamCaptureMode(int *mode) {
  FAULT(hipThreadExchangeStreamCaptureMode);
  static thread_local int present = 0;
  std::swap(present, *mode);
  return hip::kSuccess;
}

FAKE_EXPORT int hipGetStreamDeviceId(void *) { return current_device; }

FAKE_EXPORT int hipDeviceGetStreamPriorityRange(int *least, int *greatest) {
  FAULT(hipDeviceGetStreamPriorityRange);
  *least = *greatest = 0;
  return hip::kSuccess;
}

FAKE_EXPORT int hipHostMalloc(void **memory, size_t bytes, unsigned) {
  FAULT(hipHostMalloc);
  *memory = std::calloc(1, bytes);
  return *memory != nullptr ? hip::kSuccess : hip::kErrorOutOfMemory;
}

FAKE_EXPORT int hipGraphGetNodes(void *graph, void **nodes, size_t *count) {
  FAULT(hipGraphGetNodes);
  std::lock_guard lock(graphs().mutex);
  const auto found = graphs().graphs.find(static_cast<uint32_t>(id_of(graph)));
  if (!is_handle(kGraphHandle, graph) || found == graphs().graphs.end())
    return hip::kErrorInvalidValue;
  for (size_t i = 0; nodes != nullptr && i < std::min(*count, found->second.size()); ++i)
    nodes[i] = handle(kNodeHandle, found->second[i].id);
  *count = found->second.size();
  return hip::kSuccess;
}

FAKE_EXPORT int hipGraphNodeGetType(void *node, int *type) {
  FAULT(hipGraphNodeGetType);
  std::lock_guard lock(graphs().mutex);
  const GraphNode *found = find_node(node);
  if (found == nullptr)
    return hip::kErrorInvalidValue;
  *type = found->child != 0 ? hip::kNodeGraph : hip::kNodeKernel;
  return hip::kSuccess;
}

FAKE_EXPORT int hipGraphKernelNodeGetParams(void *node, hip::KernelNodeParams *parameters) {
  FAULT(hipGraphKernelNodeGetParams);
  std::lock_guard lock(graphs().mutex);
  const GraphNode *found = find_node(node);
  if (found == nullptr || found->child != 0)
    return hip::kErrorInvalidValue;
  *parameters = {};
  parameters->function = const_cast<char *>(found->kernel.name);
  std::copy(found->kernel.grid, found->kernel.grid + 3, parameters->grid);
  std::copy(found->kernel.block, found->kernel.block + 3, parameters->block);
  return hip::kSuccess;
}

FAKE_EXPORT int hipGraphChildGraphNodeGetGraph(void *node, void **graph) {
  FAULT(hipGraphChildGraphNodeGetGraph);
  std::lock_guard lock(graphs().mutex);
  const GraphNode *found = find_node(node);
  if (found == nullptr || found->child == 0)
    return hip::kErrorInvalidValue;
  *graph = handle(kGraphHandle, found->child);
  return hip::kSuccess;
}

FAKE_EXPORT int hipGraphNodeGetDependencies(void *, void **, size_t *count) {
  FAULT(hipGraphNodeGetDependencies);
  *count = 0;
  return hip::kSuccess;
}

FAKE_EXPORT const char *hipKernelNameRef(void *function) { return name_of(function); }
FAKE_EXPORT const char *hipKernelNameRefByPtr(const void *function, void *) {
  return name_of(function);
}
