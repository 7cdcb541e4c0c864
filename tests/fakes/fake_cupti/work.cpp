// Work of the driver: launches, copies, NVTX ranges, contexts, modules.
#include <chrono>

#include "counters.h"
#include "driver/cupti/cupti_abi.h"
#include "library.h"
#include "pc_sampling.h"

using namespace fake;

namespace fake {

void emit_kernel(const Kernel &kernel, uint32_t correlation, uint32_t graph_exec, uint64_t node) {
  sample_kernel(kernel);
  const auto kind =
      is_recorded(cupti::kKindKernel) ? cupti::kKindKernel : cupti::kKindConcurrentKernel;
  if (!is_recorded(kind))
    return;
  const uint64_t start = take_time(kernel.duration_ns);
  count_kernel(kernel, start, start + kernel.duration_ns);
  namespace at = cupti::kernel_offset;
  RecordBytes record(kind, kernel.context);
  record.set(at::kStart, start).set(at::kEnd, start + kernel.duration_ns);
  record.set(at::kDevice, kernel.device).set(at::kContext, kernel.context);
  record.set(at::kStream, kernel.stream).set(at::kCorrelation, correlation);
  record.set(at::kName, kernel.name).set(at::kRegisters, static_cast<uint16_t>(kernel.registers));
  record.set(at::kDynamicShared, kernel.shared_bytes).set(at::kLocalPerThread, kernel.local_bytes);
  for (size_t axis = 0; axis < 3; ++axis) {
    record.set(at::kGrid + 4 * axis, kernel.grid[axis]);
    record.set(at::kBlock + 4 * axis, kernel.block[axis]);
  }
  record.set(at::kGraphNode, node).set(at::kGraph, graph_exec);
  record.emit();
}

namespace {

Kernel kernel_of(const FakeLaunch &launch) {
  Kernel kernel{};
  kernel.name = launch.name;
  kernel.duration_ns = launch.duration_ns;
  kernel.device = launch.device;
  kernel.context = launch.context;
  kernel.stream = launch.stream;
  std::memcpy(kernel.grid, launch.grid, sizeof kernel.grid);
  std::memcpy(kernel.block, launch.block, sizeof kernel.block);
  kernel.shared_bytes = launch.shared_bytes;
  kernel.registers = launch.registers;
  kernel.local_bytes = launch.local_bytes;
  return kernel;
}

bool is_launch_ex(uint32_t cbid) {
  return cbid == cupti::kCuLaunchKernelEx || cbid == cupti::kCuLaunchKernelExPtsz;
}

/// One launch call; `kernel.name` is interned. Returns its correlation id.
uint32_t launch(const Kernel &kernel, uint32_t cbid, int result) {
  cuda::LaunchConfig config{};
  std::memcpy(config.grid, kernel.grid, sizeof config.grid);
  std::memcpy(config.block, kernel.block, sizeof config.block);
  config.shared_bytes = kernel.shared_bytes;
  config.stream = handle(kStreamHandle, kernel.stream);
  cuda::LaunchKernelExParams extended{&config, const_cast<char *>(kernel.name), nullptr, nullptr};
  cuda::LaunchKernelParams plain{};
  plain.function = const_cast<char *>(kernel.name);
  std::memcpy(plain.grid, kernel.grid, sizeof plain.grid);
  std::memcpy(plain.block, kernel.block, sizeof plain.block);
  plain.shared_bytes = kernel.shared_bytes;
  plain.stream = config.stream;
  const bool is_extended = is_launch_ex(cbid);
  DriverCall call(cbid, is_extended ? "cuLaunchKernelEx" : "cuLaunchKernel",
                  is_extended ? static_cast<const void *>(&extended) : &plain, kernel.context);
  call.result = result;
  call.enter(kernel.name);
  if (result == cuda::kSuccess && !capture(kernel))
    emit_kernel(kernel, call.correlation(), 0, 0);
  return call.correlation();
}

uint32_t transfer(int kind, int copy_kind, uint64_t bytes, uint32_t stream) {
  const bool is_copy = kind == cupti::kKindMemcpy;
  const uint32_t cbid = is_copy ? 277 : 220; // cuMemcpyHtoDAsync_v2, cuMemsetD32Async
  DriverCall call(cbid, is_copy ? "cuMemcpyHtoDAsync_v2" : "cuMemsetD32Async", nullptr, 1);
  call.enter();
  const uint64_t duration = 500 + bytes / 16;
  const uint64_t start = take_time(duration);
  namespace at = cupti::memcpy_offset; // a set has these fields at the same offsets
  RecordBytes record(kind, 1);
  record.set(at::kBytes, bytes).set(at::kStart, start).set(at::kEnd, start + duration);
  record.set(at::kContext, 1U).set(at::kStream, stream).set(at::kCorrelation, call.correlation());
  if (is_copy)
    record.set(at::kCopyKind, static_cast<uint8_t>(copy_kind));
  record.emit();
  return call.correlation();
}

void nvtx(uint32_t cbid, const char *function, const void *parameters) {
  const cupti::NvtxData data{function, parameters, nullptr};
  call_back(cupti::kDomainNvtx, cbid, &data);
}

void resource(uint32_t cbid, uint32_t context, void *descriptor) {
  const cupti::ResourceData data{handle(kContextHandle, context), nullptr, descriptor};
  call_back(cupti::kDomainResource, cbid, &data);
}

void module(uint32_t cbid, uint32_t id, uint64_t crc, size_t bytes) {
  static std::mutex mutex;
  static auto *images = new std::map<uint32_t, std::vector<char>>; // alive until unloaded
  cupti::ModuleResourceData data{id, 0, nullptr};
  {
    std::lock_guard lock(mutex);
    if (cbid == cupti::kModuleLoaded)
      (*images)[id] = cubin(crc, bytes);
    data.cubin_size = (*images)[id].size();
    data.cubin = (*images)[id].data();
  }
  if (cbid == cupti::kModuleLoaded)
    module_loaded(crc);
  resource(cbid, 1, &data);
  if (cbid == cupti::kModuleUnloadStarting)
    forget_samples_of_module(crc_of(data.cubin, data.cubin_size));
}

} // namespace
} // namespace fake

FAKE_EXPORT uint32_t fake_cupti_launch_as(const FakeLaunch *wanted) {
  Kernel kernel = kernel_of(*wanted);
  kernel.name = intern(wanted->name);
  return launch(kernel, wanted->cbid, cuda::kSuccess);
}

FAKE_EXPORT uint32_t fake_cupti_launch(const char *name, uint32_t stream) {
  FakeLaunch wanted;
  wanted.name = name;
  wanted.stream = stream;
  return fake_cupti_launch_as(&wanted);
}

FAKE_EXPORT uint32_t fake_cupti_failing_launch(const char *name, int result) {
  FakeLaunch wanted;
  wanted.name = intern(name);
  return launch(kernel_of(wanted), wanted.cbid, result);
}

FAKE_EXPORT uint32_t fake_cupti_copy(int kind, uint64_t bytes, uint32_t stream) {
  return transfer(cupti::kKindMemcpy, kind, bytes, stream);
}

FAKE_EXPORT uint32_t fake_cupti_set(uint64_t bytes, uint32_t stream) {
  return transfer(cupti::kKindMemset, 0, bytes, stream);
}

FAKE_EXPORT double fake_cupti_bench(uint64_t count) {
  FakeLaunch wanted;
  Kernel kernels[2] = {kernel_of(wanted), kernel_of(wanted)};
  kernels[0].name = intern("matmul_kernel_with_a_name_of_usual_length_0d1d2d3d");
  kernels[1].name = intern("void at::native::vectorized_elementwise_kernel<4, at::native::"
                           "FillFunctor<float>, std::array<char*, 1ul>>(int, float, char*)");
  const auto begin = std::chrono::steady_clock::now();
  for (uint64_t i = 0; i < count; ++i)
    launch(kernels[i & 1], cupti::kCuLaunchKernelEx, cuda::kSuccess);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  return took.count() / static_cast<double>(count == 0 ? 1 : count);
}

FAKE_EXPORT void fake_cupti_nvtx_push(const char *message) {
  const cupti::NvtxRangePushAParams parameters{message};
  nvtx(cupti::kNvtxRangePushA, "nvtxRangePushA", &parameters);
}

FAKE_EXPORT void fake_cupti_nvtx_pop() {
  const void *unused = nullptr;
  nvtx(cupti::kNvtxRangePop, "nvtxRangePop", &unused);
}

FAKE_EXPORT void fake_cupti_context_created(uint32_t context) {
  resource(cupti::kContextCreated, context, nullptr);
}

FAKE_EXPORT void fake_cupti_context_destroyed(uint32_t context) {
  resource(cupti::kContextDestroyStarting, context, nullptr);
  forget_samples_of_context(context);
}

FAKE_EXPORT void fake_cupti_module_loaded(uint32_t id, uint64_t crc, size_t bytes) {
  module(cupti::kModuleLoaded, id, crc, bytes);
}

FAKE_EXPORT void fake_cupti_module_unloaded(uint32_t id) {
  module(cupti::kModuleUnloadStarting, id, 0, 0);
}

FAKE_EXPORT void fake_cupti_hold(uint32_t context) {
  std::lock_guard lock(library().mutex);
  library().held.try_emplace(context);
  library().is_any_held = true;
}

FAKE_EXPORT void fake_cupti_release(uint32_t context) {
  std::vector<std::vector<char>> records;
  {
    std::lock_guard lock(library().mutex);
    const auto held = library().held.find(context);
    if (held == library().held.end())
      return;
    records = std::move(held->second);
    library().held.erase(held);
    library().is_any_held = !library().held.empty();
  }
  for (const std::vector<char> &record : records)
    library().delivery.append(record.data(), record.size());
}

FAKE_EXPORT void fake_cupti_drop(uint64_t records) { library().delivery.drop(records); }
FAKE_EXPORT void fake_cupti_set_correlation(uint32_t next) { library().correlation = next; }
FAKE_EXPORT void fake_cupti_real_clock() { library().is_real_clock = true; }

FAKE_EXPORT void fake_cupti_set_clock(uint64_t next_ns) { library().clock_ns = next_ns; }
FAKE_EXPORT void fake_cupti_drain() { library().delivery.drain(); }
FAKE_EXPORT void fake_cupti_period_elapsed() { library().delivery.complete_on_worker(); }

FAKE_EXPORT void fake_cupti_other_subscriber(const char *name) {
  std::lock_guard lock(library().mutex);
  library().other_subscriber = name == nullptr ? "" : name;
}

FAKE_EXPORT int fake_cupti_is_enabled(int domain, uint32_t cbid) { return is_on(domain, cbid); }

FAKE_EXPORT int fake_cupti_is_kind_enabled(int kind) {
  return library().kinds[static_cast<size_t>(kind)];
}

FAKE_EXPORT uint64_t fake_cupti_buffers_outstanding() { return library().delivery.outstanding(); }

FAKE_EXPORT int fake_cupti_attribute(int attribute, uint64_t *value) {
  std::lock_guard lock(library().mutex);
  const auto found = library().attributes.find(attribute);
  if (found == library().attributes.end())
    return 0;
  *value = found->second;
  return 1;
}
