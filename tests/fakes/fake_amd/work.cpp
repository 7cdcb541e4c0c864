// HIP work besides graphs: launches, copies, ROCTX ranges.
#include <chrono>
#include <cstring>

#include "device.h"
#include "driver/hip/hip_driver.h"

namespace fake {
namespace {

namespace roctx = proton::roctx;

constexpr CallKind kLaunchCalls[] = {
    CallKind::kModuleLaunch,      CallKind::kLaunch,
    CallKind::kExtModuleLaunch,   CallKind::kCooperative,
    CallKind::kModuleCooperative, CallKind::kLaunchExC,
    CallKind::kDrvLaunchEx,       CallKind::kExtLaunch,
};

Kernel kernel_of_launch(const FakeAmdLaunch &launch) {
  Kernel kernel = kernel_of(launch.name);
  kernel.duration_ns = launch.duration_ns;
  kernel.device = launch.device;
  kernel.stream = launch.stream;
  std::memcpy(kernel.grid, launch.grid, sizeof kernel.grid);
  std::memcpy(kernel.block, launch.block, sizeof kernel.block);
  kernel.shared_bytes = launch.shared_bytes;
  kernel.missing_items = launch.missing_items;
  return kernel;
}

uint64_t launch(const Kernel &kernel, CallKind kind, int result) {
  TracedCall traced(kind);
  HipCall &call = traced.call;
  call.function = const_cast<char *>(kernel.name);
  std::memcpy(call.grid, kernel.grid, sizeof call.grid);
  std::memcpy(call.block, kernel.block, sizeof call.block);
  call.shared_bytes = kernel.shared_bytes;
  call.stream = stream_handle(kernel.stream);
  call.result = result;
  traced.enter();
  if (result == hip::kSuccess && !capture(kernel)) {
    Activity activity;
    activity.kernel = kernel;
    activity.correlation = call.correlation;
    run_on_device(activity, kernel.duration_ns);
  }
  return call.correlation;
}

uint64_t transfer(ActivityKind kind, int copy_kind, uint64_t bytes, uint32_t stream) {
  TracedCall traced(kind == ActivityKind::kCopy ? CallKind::kCopy : CallKind::kSet);
  traced.call.bytes = bytes;
  traced.call.copy_kind = copy_kind;
  traced.call.stream = stream_handle(stream);
  traced.enter();
  Activity activity;
  activity.kind = kind;
  if (kind == ActivityKind::kSet) // HIP sets memory by a kernel of its own
    activity.kernel = kernel_of("__amd_rocclr_fillBufferAligned");
  activity.kernel.stream = stream;
  activity.bytes = bytes;
  activity.copy_kind = copy_kind;
  activity.correlation = traced.call.correlation;
  run_on_device(activity, 500 + bytes / 16);
  return traced.call.correlation;
}

void tell_range(uint32_t operation, const char *message, uint64_t id) {
  for (std::atomic<Tracer *> &tracer : device().tracers)
    if (Tracer *present = tracer.load(); present != nullptr)
      present->range(operation, message, id);
}

} // namespace

void run_on_device(Activity &activity, uint64_t duration_ns) {
  activity.start_ns = device().clock_ns.fetch_add(duration_ns + 100);
  activity.end_ns = activity.start_ns + duration_ns;
  if (activity.kernel.device < device().gpus.size())
    activity.gpu = device().gpus[activity.kernel.device].index;
  emit(activity);
}

} // namespace fake

using namespace fake;

FAKE_EXPORT uint64_t fake_amd_launch_as(const FakeAmdLaunch *wanted) {
  return launch(kernel_of_launch(*wanted), kLaunchCalls[wanted->call % std::size(kLaunchCalls)],
                hip::kSuccess);
}

FAKE_EXPORT uint64_t fake_amd_launch(const char *name, uint32_t stream) {
  FakeAmdLaunch wanted;
  wanted.name = name;
  wanted.stream = stream;
  return fake_amd_launch_as(&wanted);
}

FAKE_EXPORT uint64_t fake_amd_failing_launch(const char *name, int result) {
  FakeAmdLaunch wanted;
  wanted.name = name;
  return launch(kernel_of_launch(wanted), CallKind::kModuleLaunch, result);
}

FAKE_EXPORT uint64_t fake_amd_copy(int kind, uint64_t bytes, uint32_t stream) {
  return transfer(ActivityKind::kCopy, kind, bytes, stream);
}

FAKE_EXPORT uint64_t fake_amd_set(uint64_t bytes, uint32_t stream) {
  return transfer(ActivityKind::kSet, 0, bytes, stream);
}

FAKE_EXPORT double fake_amd_bench(uint64_t count) {
  FakeAmdLaunch wanted;
  wanted.name = "matmul_kernel_with_a_name_of_usual_length_0d1d2d3d";
  const Kernel first = kernel_of_launch(wanted);
  wanted.name = "void at::native::vectorized_elementwise_kernel<4, at::native::"
                "FillFunctor<float>, std::array<char*, 1ul>>(int, float, char*)";
  const Kernel kernels[2] = {first, kernel_of_launch(wanted)};
  const auto begin = std::chrono::steady_clock::now();
  for (uint64_t i = 0; i < count; ++i)
    launch(kernels[i & 1], CallKind::kModuleLaunch, hip::kSuccess);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  return took.count() / static_cast<double>(count == 0 ? 1 : count);
}

FAKE_EXPORT void fake_amd_range_push(const char *message) {
  tell_range(roctx::kRangePush, message, 0);
}
FAKE_EXPORT void fake_amd_range_pop() { tell_range(roctx::kRangePop, nullptr, 0); }
FAKE_EXPORT void fake_amd_mark(const char *message) { tell_range(roctx::kMark, message, 0); }

FAKE_EXPORT int fake_amd_is_traced(const char *name) {
  static const std::map<std::string, CallKind> kinds = {
      {"hipModuleLaunchKernel", CallKind::kModuleLaunch},
      {"hipLaunchKernel", CallKind::kLaunch},
      {"hipMemcpyAsync", CallKind::kCopy},
      {"hipMemsetAsync", CallKind::kSet},
      {"hipStreamBeginCapture", CallKind::kBeginCapture},
      {"hipStreamEndCapture", CallKind::kEndCapture},
      {"hipGraphInstantiate", CallKind::kInstantiate},
      {"hipGraphLaunch", CallKind::kGraphLaunch},
  };
  const auto found = kinds.find(name);
  if (found == kinds.end())
    return 0;
  for (std::atomic<Tracer *> &tracer : device().tracers)
    if (Tracer *present = tracer.load(); present != nullptr && present->wants(found->second))
      return 1;
  return 0;
}
