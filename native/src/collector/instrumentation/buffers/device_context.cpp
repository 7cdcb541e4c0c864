#include "collector/instrumentation/buffers/device_context.h"

#include "collector/instrumentation/device/device_code.h"
#include "driver/own_work.h"
#include "support/error.h"

namespace proton {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kAnchorsPerProcessor = 4; // so that every processor gets a block

template <typename Task>
cuda::Result launch(const CudaFunctions &functions, void *function, const Task &task,
                    uint32_t blocks, uint32_t threads, uint32_t shared_bytes,
                    void *stream) noexcept {
  OwnWork own;
  void *parameters[] = {const_cast<Task *>(&task)};
  return functions.launch_kernel(function, blocks, 1, 1, threads, 1, 1, shared_bytes, stream,
                                 parameters, nullptr);
}

} // namespace

DeviceContext::DeviceContext(const CudaDriver &work, void *context)
    : work_(work), context_(context) {
  try {
    load();
  } catch (...) {
    release();
    throw;
  }
}

uint32_t DeviceContext::attribute(cuda::DeviceAttribute which) const {
  int value = 0;
  cuda::Result result = work_.functions().device_get_attribute(&value, which, device_);
  return result == cuda::kSuccess && value > 0 ? static_cast<uint32_t>(value) : 0;
}

void DeviceContext::load() {
  const CudaFunctions &functions = work_.functions();
  const std::string purpose = "loading the kernels that reduce records";
  RelaxedCapture relaxed(functions);
  work_.check(functions.ctx_get_device(&device_), "cuCtxGetDevice", purpose);
  processors_ = attribute(cuda::kAttributeMultiprocessors);
  processors_ = processors_ == 0 ? 1 : processors_;
  capability_major_ = attribute(cuda::kAttributeCapabilityMajor);
  work_.check(functions.module_load_data(&module_, kDeviceCode), "cuModuleLoadData", purpose);
  auto find = [&](void *&function, const char *name) {
    work_.check(functions.module_get_function(&function, module_, name), "cuModuleGetFunction",
                purpose);
  };
  find(reduce_, kReduceFunction);
  find(harvest_, kHarvestFunction);
  find(anchor_, kAnchorFunction);
  work_.check(functions.stream_create(&side_stream_, cuda::kStreamNonBlocking), "cuStreamCreate",
              purpose);
}

cuda::DevicePointer DeviceContext::allocate(size_t bytes, const std::string &purpose) const {
  const CudaFunctions &functions = work_.functions();
  RelaxedCapture relaxed(functions);
  cuda::DevicePointer memory = 0;
  work_.check(functions.mem_alloc(&memory, bytes), "cuMemAlloc",
              purpose + " (" + std::to_string(bytes) + " bytes)");
  OwnWork own;
  // On a stream of our own: the user's may be captured, and a graph must not clear at each launch.
  cuda::Result result = functions.memset_d8_async(memory, 0, bytes, side_stream_);
  if (result == cuda::kSuccess)
    result = functions.stream_synchronize(side_stream_);
  if (result != cuda::kSuccess)
    functions.mem_free(memory);
  work_.check(result, "cuMemsetD8Async", purpose);
  return memory;
}

void DeviceContext::free(cuda::DevicePointer memory) const noexcept {
  RelaxedCapture relaxed(work_.functions());
  work_.functions().mem_free(memory); // a failure leaves nothing to do
}

void *DeviceContext::allocate_host(size_t bytes, const std::string &purpose) const {
  const CudaFunctions &functions = work_.functions();
  RelaxedCapture relaxed(functions);
  void *memory = nullptr;
  work_.check(functions.mem_host_alloc(&memory, bytes,
                                       cuda::kHostAllocPortable | cuda::kHostAllocDeviceMap),
              "cuMemHostAlloc", purpose + " (" + std::to_string(bytes) + " bytes)");
  return memory;
}

void DeviceContext::free_host(void *memory) const noexcept {
  RelaxedCapture relaxed(work_.functions());
  work_.functions().mem_free_host(memory);
}

void *DeviceContext::copy_stream() {
  const CudaFunctions &functions = work_.functions();
  RelaxedCapture relaxed(functions);
  if (!copy_stream_)
    work_.check(functions.stream_create(&copy_stream_, cuda::kStreamNonBlocking), "cuStreamCreate",
                "making a stream for timelines");
  return copy_stream_;
}

void *DeviceContext::make_event(const std::string &purpose) const {
  const CudaFunctions &functions = work_.functions();
  RelaxedCapture relaxed(functions);
  void *event = nullptr;
  work_.check(functions.event_create(&event, cuda::kEventDisableTiming), "cuEventCreate", purpose);
  return event;
}

bool DeviceContext::is_over(void *event) const noexcept {
  RelaxedCapture relaxed(work_.functions());
  return work_.functions().event_query(event) == cuda::kSuccess;
}

cuda::Result DeviceContext::reduce(const device::ReduceTask &task, const device::ReduceShape &shape,
                                   void *stream) const noexcept {
  return launch(work_.functions(), reduce_, task, shape.blocks, shape.warps * device::kLanes,
                shape.shared_bytes, stream);
}

cuda::Result DeviceContext::harvest(const device::HarvestTask &task, void *stream) const noexcept {
  auto blocks = static_cast<uint32_t>((task.words + kThreads - 1) / kThreads);
  return launch(work_.functions(), harvest_, task, blocks, kThreads, 0, stream);
}

cuda::Result DeviceContext::anchor(const device::AnchorTask &task, void *stream) const noexcept {
  return launch(work_.functions(), anchor_, task, processors_ * kAnchorsPerProcessor,
                device::kLanes, 0, stream);
}

cuda::Result DeviceContext::clear(cuda::DevicePointer memory, size_t bytes,
                                  void *stream) const noexcept {
  OwnWork own;
  return work_.functions().memset_d8_async(memory, 0, bytes, stream);
}

uint64_t DeviceContext::release() noexcept {
  const CudaFunctions &functions = work_.functions();
  RelaxedCapture relaxed(functions);
  uint64_t failed = 0;
  if (side_stream_)
    failed += functions.stream_destroy(side_stream_) == cuda::kSuccess ? 0 : 1;
  if (copy_stream_)
    failed += functions.stream_destroy(copy_stream_) == cuda::kSuccess ? 0 : 1;
  if (module_)
    failed += functions.module_unload(module_) == cuda::kSuccess ? 0 : 1;
  side_stream_ = copy_stream_ = module_ = nullptr;
  return failed;
}

namespace {

std::string fault_of(const InstrumentedKernel &kernel) {
  BufferLayout layout = kernel.layout();
  if (std::string fault = layout.fault(); !fault.empty())
    return fault;
  if (kernel.scratch_bytes % 8 != 0)
    return "its blocks of " + std::to_string(kernel.scratch_bytes) + " bytes are not aligned";
  if (layout.segments() > device::kMaxWarps)
    return std::to_string(layout.segments()) + " warps record, more than the " +
           std::to_string(device::kMaxWarps) + " that a program can have";
  if (kernel.programs.size() > device::kMaxRanges)
    return std::to_string(kernel.programs.size()) + " ranges of programs are more than " +
           std::to_string(device::kMaxRanges);
  return "";
}

} // namespace

void InstrumentedKernel::finish() {
  scope_parents.resize(scope_names.size(), kNoScope);
  if (std::string fault = fault_of(*this); !fault.empty())
    throw Error(ErrorCode::kUsage, "records of kernel '" + name + "' cannot be read: " + fault);
  scopes.clear();
  for (size_t id = 0; id < scope_names.size(); ++id)
    scopes.push_back({scope_names[id].c_str(), scope_parents[id]});
  BufferLayout described = layout();
  task.scratch_bytes = scratch_bytes;
  task.warps = warps;
  task.segments = described.segments();
  task.scopes = described.scopes;
  task.record_cost = record_cost_cycles;
  task.clock_bits = has_short_clock ? kShortClockBits : kClockBits;
  for (uint32_t segment = 0; segment < task.segments; ++segment)
    task.warp_ids[segment] = static_cast<uint8_t>(described.warp_of(segment));
  task.ranges = static_cast<uint32_t>(programs.size());
  for (size_t i = 0; i < programs.size(); ++i) {
    task.first[i] = programs[i].first;
    task.last[i] = programs[i].second;
  }
}

} // namespace proton
