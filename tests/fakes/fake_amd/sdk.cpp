#include "sdk.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "call_parameters.h"
#include "driver/hip/hip_abi.h"
#include "driver/hip/hip_driver.h"
#include "driver/rocprofiler/rocprofiler_hip_calls.h"
#include "machine.h"

namespace fake {
namespace {

struct Layout {
  using LaunchKernelParams = sdk::LaunchKernelParams;
  using CooperativeLaunchParams = sdk::CooperativeLaunchParams;
  using ModuleLaunchParams = sdk::ModuleLaunchParams;
  using ExtModuleLaunchParams = sdk::ExtModuleLaunchParams;
  using LaunchKernelExParams = sdk::LaunchKernelExParams;
  using DrvLaunchKernelExParams = sdk::DrvLaunchKernelExParams;
  using GraphLaunchParams = sdk::GraphLaunchParams;
  using StreamBeginCaptureParams = sdk::StreamBeginCaptureParams;
  using StreamEndCaptureParams = sdk::StreamEndCaptureParams;
  using GraphInstantiateParams = sdk::GraphInstantiateParams;
  using GraphParams = sdk::GraphParams;
  using GraphExecUpdateParams = sdk::GraphExecUpdateParams;
  using GraphCloneParams = sdk::GraphCloneParams;
  using GraphAddChildNodeParams = sdk::GraphAddChildNodeParams;
  using GraphAddKernelNodeParams = sdk::GraphAddKernelNodeParams;
  using CopyAsyncParams = sdk::CopyAsyncParams;
  using SetAsyncParams = sdk::SetAsyncParams;
  static void set_function(LaunchKernelExParams &parameters, const HipCall &call) {
    parameters.host_function = call.function;
  }
  static void set_function(DrvLaunchKernelExParams &parameters, const HipCall &call) {
    parameters.function = call.function;
  }
};

/// By CallKind.
constexpr int kCalls[] = {
    sdk::kHipModuleLaunchKernel,
    sdk::kHipLaunchKernel,
    sdk::kHipExtModuleLaunchKernel,
    sdk::kHipLaunchCooperativeKernel,
    sdk::kHipModuleLaunchCooperativeKernel,
    sdk::kHipLaunchKernelExC,
    sdk::kHipDrvLaunchKernelEx,
    sdk::kHipExtLaunchKernel,
    sdk::kHipMemcpyAsync,
    sdk::kHipMemsetAsync,
    sdk::kHipStreamBeginCapture,
    sdk::kHipStreamEndCapture,
    sdk::kHipGraphInstantiate,
    sdk::kHipGraphLaunch,
    sdk::kHipGraphExecUpdate,
    sdk::kHipGraphClone,
    sdk::kHipGraphAddChildGraphNode,
    sdk::kHipGraphAddKernelNode,
    sdk::kHipGraphDestroy,
    sdk::kHipGraphExecDestroy,
};
static_assert(std::size(kCalls) == static_cast<size_t>(CallKind::kCount));

int call_of(const HipCall &call) { return kCalls[static_cast<size_t>(call.kind)]; }

struct HipPayload {
  uint64_t size = sizeof(HipPayload);
  char parameters[kParameterBytes] = {};
};
static_assert(offsetof(HipPayload, parameters) == sdk::kHipParameters);

int copy_operation(const Activity &activity) {
  switch (activity.copy_kind) {
  case hip::kCopyHostToHost:
    return sdk::kCopyHostToHost;
  case hip::kCopyHostToDevice:
    return sdk::kCopyHostToDevice;
  case hip::kCopyDeviceToHost:
    return sdk::kCopyDeviceToHost;
  default:
    return sdk::kCopyDeviceToDevice;
  }
}

AnyRecord dispatch_record(const Activity &activity, uint64_t external) {
  AnyRecord any;
  any.kind = sdk::kBufferKernelDispatch;
  sdk::DispatchRecord &record = any.dispatch;
  record = {};
  record.size = sizeof record;
  record.kind = sdk::kBufferKernelDispatch;
  record.operation = sdk::kDispatchComplete;
  record.correlation.internal = activity.correlation;
  record.correlation.external.value = external;
  record.thread = thread_number();
  record.start_ns = activity.start_ns;
  record.end_ns = activity.end_ns;
  static std::atomic<uint64_t> dispatches{0};
  sdk::DispatchInfo &info = record.dispatch;
  info.size = sizeof info;
  info.agent = kFirstGpuAgent + activity.gpu;
  info.queue = 1; // several streams share one
  info.kernel = activity.kernel.id;
  info.dispatch = dispatches.fetch_add(1, std::memory_order_relaxed) + 1;
  info.group_segment_bytes = activity.kernel.shared_bytes;
  for (size_t axis = 0; axis < 3; ++axis) {
    info.block[axis] = activity.kernel.block[axis];
    info.work_items[axis] = activity.kernel.grid[axis] * activity.kernel.block[axis];
  }
  info.work_items[0] -= activity.kernel.missing_items;
  return any;
}

AnyRecord copy_record(const Activity &activity, uint64_t external) {
  AnyRecord any;
  any.kind = sdk::kBufferMemoryCopy;
  sdk::CopyRecord &record = any.copy;
  record = {};
  record.size = sizeof record;
  record.kind = sdk::kBufferMemoryCopy;
  record.operation = copy_operation(activity);
  record.correlation.internal = activity.correlation;
  record.correlation.external.value = external;
  record.thread = thread_number();
  record.start_ns = activity.start_ns;
  record.end_ns = activity.end_ns;
  const uint64_t gpu = kFirstGpuAgent + activity.gpu;
  const bool from_host = record.operation == sdk::kCopyHostToDevice;
  const bool to_host = record.operation == sdk::kCopyDeviceToHost;
  record.source_agent = from_host ? kCpuAgent : gpu;
  record.target_agent = to_host ? kCpuAgent : gpu;
  record.bytes = activity.bytes;
  return any;
}

/// Kind of the buffer record: sets are kernels of HIP without a name.
int buffer_kind(const Activity &activity) {
  return activity.kind == ActivityKind::kCopy ? sdk::kBufferMemoryCopy : sdk::kBufferKernelDispatch;
}

} // namespace

uint64_t thread_number() {
  static thread_local const auto number = static_cast<uint64_t>(syscall(SYS_gettid));
  return number;
}

Sdk &the_sdk() {
  static Sdk *instance = [] {
    auto *made = new Sdk; // threads run after static destruction
    add_tracer(made);
    return made;
  }();
  return *instance;
}

void Buffer::deliver(std::vector<AnyRecord> &records, uint64_t dropped_now) {
  const uint64_t total = dropped.fetch_add(dropped_now) + dropped_now;
  if (records.empty())
    return;
  std::vector<sdk::RecordHeader> headers(records.size());
  std::vector<sdk::RecordHeader *> pointers(records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    void *payload = &records[i].dispatch;
    headers[i] = {sdk::kCategoryTracing, records[i].kind, payload};
    pointers[i] = &headers[i];
  }
  callback(context, id, pointers.data(), pointers.size(), user, total);
}

Context *Sdk::find(sdk::Handle handle) {
  for (const auto &context : contexts)
    if (context->id == handle.handle && context->is_valid)
      return context.get();
  return nullptr;
}

Buffer *Sdk::find_buffer(sdk::Handle handle) {
  for (const auto &buffer : buffers)
    if (buffer->id.handle == handle.handle)
      return buffer.get();
  return nullptr;
}

void started(Sdk &self, Context &context) {
  const auto found = context.services.find(sdk::kCallbackHipRuntimeApi);
  const bool is_on = context.is_active;
  if (found != context.services.end()) {
    self.hip_context_ = is_on ? &context : nullptr;
    for (size_t i = 0; i < std::size(kCalls); ++i)
      self.wanted_[i] = is_on && found->second.has(kCalls[i]);
  }
  if (is_on && context.services.contains(sdk::kCallbackCodeObject) && !hides_kernels())
    for (const Kernel &kernel : loaded_kernels()) // those that were there before
      self.tell_kernel(context, kernel);
}

void Sdk::tell(Context &context, const Service &service, sdk::CallbackRecord record,
               sdk::UserValue &user) {
  record.context.handle = context.id;
  record.thread = thread_number();
  service.callback(record, &user, service.user);
}

void Sdk::tell_kernel(Context &context, const Kernel &kernel) {
  const Service &service = context.services[sdk::kCallbackCodeObject];
  if (!service.has(sdk::kKernelSymbolRegister))
    return;
  static std::mutex mutex;
  static auto *names = new std::map<uint64_t, std::string>; // alive as long as the code object
  sdk::KernelSymbolData symbol{};
  {
    std::lock_guard lock(mutex);
    symbol.name = names->emplace(kernel.id, std::string(kernel.name) + ".kd").first->second.c_str();
  }
  symbol.size = sizeof symbol;
  symbol.kernel = kernel.id;
  symbol.code_object = 1;
  sdk::CallbackRecord record{};
  record.kind = sdk::kCallbackCodeObject;
  record.operation = sdk::kKernelSymbolRegister;
  record.phase = sdk::kLoad;
  record.payload = &symbol;
  sdk::UserValue user{};
  tell(context, service, record, user);
}

void Sdk::kernel_loaded(const Kernel &kernel) {
  if (hides_kernels())
    return;
  for (const auto &context : contexts)
    if (context->is_active && context->services.contains(sdk::kCallbackCodeObject))
      tell_kernel(*context, kernel);
}

bool Sdk::wants(CallKind kind) {
  return wanted_[static_cast<size_t>(kind)].load(std::memory_order_relaxed);
}

void Sdk::enter(HipCall &call) {
  Context *context = hip_context_.load(std::memory_order_relaxed);
  if (context == nullptr)
    return;
  HipPayload payload;
  put_parameters<Layout>(call, payload.parameters);
  sdk::CallbackRecord record{};
  record.correlation.internal = call.correlation;
  record.kind = sdk::kCallbackHipRuntimeApi;
  record.operation = call_of(call);
  record.phase = sdk::kEnter;
  record.payload = &payload;
  sdk::UserValue user{};
  tell(*context, context->services.find(sdk::kCallbackHipRuntimeApi)->second, record, user);
  call.kept[0] = user.value;
}

void Sdk::exit(HipCall &call) {
  Context *context = hip_context_.load(std::memory_order_relaxed);
  if (context == nullptr)
    return;
  HipPayload payload;
  put_parameters<Layout>(call, payload.parameters);
  std::memcpy(payload.parameters + sdk::kHipParametersBytes, &call.result, sizeof call.result);
  sdk::CallbackRecord record{};
  record.correlation.internal = call.correlation;
  record.kind = sdk::kCallbackHipRuntimeApi;
  record.operation = call_of(call);
  record.phase = sdk::kExit;
  record.payload = &payload;
  sdk::UserValue user{};
  user.value = call.kept[0];
  tell(*context, context->services.find(sdk::kCallbackHipRuntimeApi)->second, record, user);
}

bool Sdk::dispatch(const Activity &activity, uint64_t &external) {
  if (!sees_dispatches)
    return false;
  bool is_wanted = false;
  for (const auto &context : contexts) {
    if (!context->is_active.load(std::memory_order_relaxed) ||
        !context->buffers.contains(buffer_kind(activity)))
      continue;
    is_wanted = true;
    sdk::UserValue value{};
    if (context->request != nullptr) {
      const bool is_kernel = buffer_kind(activity) == sdk::kBufferKernelDispatch;
      context->request(thread_number(), {context->id},
                       is_kernel ? sdk::kRequestKernelDispatch : sdk::kRequestMemoryCopy,
                       is_kernel ? sdk::kDispatchEnqueue : copy_operation(activity),
                       activity.correlation, &value, context->request_user);
    }
    external = value.value;
  }
  return is_wanted;
}

void Sdk::record(const Activity &activity, uint64_t external) {
  const AnyRecord any = buffer_kind(activity) == sdk::kBufferMemoryCopy
                            ? copy_record(activity, external)
                            : dispatch_record(activity, external);
  for (const auto &context : contexts) {
    const auto found = context->buffers.find(buffer_kind(activity));
    if (context->is_active.load(std::memory_order_relaxed) && found != context->buffers.end())
      found->second->blocks->append(any);
  }
}

void Sdk::range(uint32_t operation, const char *message, uint64_t id) {
  for (const auto &context : contexts) {
    const auto found = context->services.find(sdk::kCallbackMarkerCoreApi);
    if (!context->is_active || found == context->services.end() ||
        !found->second.has(static_cast<int>(operation)))
      continue;
    sdk::MarkerData payload{};
    payload.size = sizeof payload;
    if (operation == proton::roctx::kRangeStop)
      payload.range_id = id;
    else
      payload.message = message;
    sdk::CallbackRecord record{};
    record.kind = sdk::kCallbackMarkerCoreApi;
    record.operation = static_cast<int>(operation);
    record.payload = &payload;
    sdk::UserValue user{};
    record.phase = sdk::kEnter;
    tell(*context, found->second, record, user);
    record.phase = sdk::kExit;
    payload.answer = static_cast<int64_t>(id);
    tell(*context, found->second, record, user);
  }
}

void Sdk::drain() {
  for (const auto &buffer : buffers)
    buffer->blocks->drain();
}

uint64_t Sdk::waiting() {
  uint64_t records = 0;
  for (const auto &buffer : buffers)
    records += buffer->blocks->waiting();
  return records;
}

int Sdk::configure(sdk::Configure configure) {
  State none = State::kNone;
  if (!state.compare_exchange_strong(none, State::kConfiguring))
    return sdk::kErrorConfigurationLocked;
  const char *late = std::getenv("FAKE_ROCPROFILER_LATE");
  if (runtime_has_started()) {
    if (late == nullptr || std::string(late) == "locked") {
      state = State::kDone;
      return sdk::kErrorConfigurationLocked;
    }
    sees_dispatches = false; // as 1.2 does: no word about it
  }
  client_.size = sizeof client_;
  sdk::ConfigureResult *result = configure(10201, "1.2.1", 0, &client_);
  if (result != nullptr) {
    result_ = *result;
    const auto finalize = [](sdk::ClientId) {};
    if (result_.initialize != nullptr && result_.initialize(finalize, result_.tool) != 0)
      for (const auto &context : contexts) {
        context->is_valid = false;
        context->is_active = false;
      }
  }
  state = State::kDone;
  return sdk::kSuccess;
}

} // namespace fake
