// The double of librocprofiler-sdk: its entry points. Environment:
//   FAKE_ROCPROFILER_LATE  "locked" (default): a tool that registers after HIP has started is
//                          refused; "silent": it is accepted and sees no dispatches
#include <cstdio>
#include <cstring>

#include "driver/rocprofiler/rocprofiler_abi.h"
#include "machine.h"
#include "sdk.h"

using namespace fake;

namespace {

bool is_locked() { return the_sdk().state != Sdk::State::kConfiguring; }

std::vector<bool> set_of(const int *operations, size_t count) {
  std::vector<bool> set;
  for (size_t i = 0; operations != nullptr && i < count; ++i) {
    const auto at = static_cast<size_t>(operations[i]);
    if (at >= set.size())
      set.resize(at + 1);
    set[at] = true;
  }
  return set;
}

struct AgentBytes {
  alignas(8) char bytes[sdk::kAgentBytes] = {};
  template <typename T> void set(size_t offset, T value) {
    std::memcpy(bytes + offset, &value, sizeof value);
  }
};

AgentBytes cpu_agent() {
  namespace at = sdk::agent_offset;
  AgentBytes agent;
  agent.set(at::kSize, uint64_t{sdk::kAgentBytes});
  agent.set(at::kId, kCpuAgent);
  agent.set(at::kType, static_cast<int>(sdk::kAgentCpu));
  agent.set(at::kName, "a CPU");
  agent.set(at::kProduct, "a CPU");
  return agent;
}

bool is_among(const std::vector<Gpu> &gpus, uint32_t index) {
  for (const Gpu &gpu : gpus)
    if (gpu.index == index)
      return true;
  return false;
}

AgentBytes gpu_agent(const Gpu &gpu) {
  namespace at = sdk::agent_offset;
  AgentBytes agent;
  agent.set(at::kSize, uint64_t{sdk::kAgentBytes});
  agent.set(at::kId, kFirstGpuAgent + gpu.index);
  agent.set(at::kType, static_cast<int>(sdk::kAgentGpu));
  agent.set(at::kWaveSize, 64U);
  agent.set(at::kComputeUnits, 304U);
  agent.set(at::kGfxVersion, 90402U);
  agent.set(at::kLocation, gpu.location());
  agent.set(at::kPciDomain, gpu.domain());
  agent.set(at::kMaxClockMhz, 2100U);
  agent.set(at::kGpuId, uint64_t{1000} + gpu.index);
  agent.set(at::kName, kArch);
  agent.set(at::kProduct, kProduct);
  agent.set(at::kNode, gpu.node());
  agent.set(at::kLogicalNode, static_cast<int32_t>(gpu.index + 1));
  agent.set(at::kLogicalNodeOfType, static_cast<int32_t>(gpu.index));
  agent.set(at::kUuid, gpu.uuid());
  uint32_t visibility = 0;
  if (is_among(gpus_of_rocr(), gpu.index))
    visibility |= sdk::kVisibleToHsa;
  if (is_among(gpus_of_hip(), gpu.index))
    visibility |= sdk::kVisibleToHip;
  agent.set(at::kRuntimeVisibility, visibility);
  return agent;
}

} // namespace

FAKE_EXPORT int rocprofiler_force_configure(sdk::Configure configure) {
  FAULT(rocprofiler_force_configure);
  return the_sdk().configure(configure);
}
FAKE_EXPORT int rocprofiler_is_initialized(int *status) {
  FAULT(rocprofiler_is_initialized);
  const Sdk::State state = the_sdk().state;
  *status = state == Sdk::State::kDone ? 1 : state == Sdk::State::kConfiguring ? -1 : 0;
  return sdk::kSuccess;
}
FAKE_EXPORT int rocprofiler_is_finalized(int *status) {
  FAULT(rocprofiler_is_finalized);
  *status = 0;
  return sdk::kSuccess;
}
FAKE_EXPORT int rocprofiler_get_version(uint32_t *major, uint32_t *minor, uint32_t *patch) {
  FAULT(rocprofiler_get_version);
  const uint32_t version[] = {1, 2, 1};
  uint32_t *places[] = {major, minor, patch};
  for (size_t i = 0; i < 3; ++i)
    if (places[i] != nullptr)
      *places[i] = version[i];
  return sdk::kSuccess;
}
FAKE_EXPORT const char *rocprofiler_get_status_name(int status) {
  static thread_local char name[48];
  std::snprintf(name, sizeof name, "ROCPROFILER_STATUS_FAKE_%d", status);
  return name;
}
FAKE_EXPORT const char *rocprofiler_get_status_string(int) { return "made up by a test"; }
FAKE_EXPORT int rocprofiler_get_timestamp(uint64_t *ns) {
  FAULT(rocprofiler_get_timestamp);
  *ns = clock_ns();
  return sdk::kSuccess;
}
FAKE_EXPORT int rocprofiler_get_thread_id(uint64_t *thread) {
  FAULT(rocprofiler_get_thread_id);
  *thread = thread_number();
  return sdk::kSuccess;
}

FAKE_EXPORT int rocprofiler_create_context(sdk::Handle *handle) {
  FAULT(rocprofiler_create_context);
  if (is_locked())
    return sdk::kErrorConfigurationLocked;
  if (handle->handle != 0)
    return 13; // ROCPROFILER_STATUS_ERROR_CONTEXT_ID_NOT_ZERO
  auto context = std::make_unique<Context>();
  context->id = the_sdk().contexts.size() + 1;
  handle->handle = context->id;
  the_sdk().contexts.push_back(std::move(context));
  return sdk::kSuccess;
}
FAKE_EXPORT int rocprofiler_destroy_context(sdk::Handle handle) {
  FAULT(rocprofiler_destroy_context);
  Context *context = the_sdk().find(handle);
  if (context == nullptr)
    return sdk::kErrorContextNotFound;
  context->is_valid = false;
  return sdk::kSuccess;
}
FAKE_EXPORT int rocprofiler_context_is_valid(sdk::Handle handle, int *is_valid) {
  FAULT(rocprofiler_context_is_valid);
  *is_valid = the_sdk().find(handle) != nullptr ? 1 : 0;
  return sdk::kSuccess;
}
FAKE_EXPORT int rocprofiler_context_is_active(sdk::Handle handle, int *is_active) {
  FAULT(rocprofiler_context_is_active);
  const Context *context = the_sdk().find(handle);
  *is_active = context != nullptr && context->is_active ? 1 : 0;
  return sdk::kSuccess;
}

static int set_active(sdk::Handle handle, bool is_active) {
  Context *context = the_sdk().find(handle);
  if (context == nullptr)
    return sdk::kErrorContextNotFound;
  context->is_active = is_active;
  started(the_sdk(), *context);
  return sdk::kSuccess;
}
FAKE_EXPORT int rocprofiler_start_context(sdk::Handle handle) {
  FAULT(rocprofiler_start_context);
  return set_active(handle, true);
}
FAKE_EXPORT int rocprofiler_stop_context(sdk::Handle handle) {
  FAULT(rocprofiler_stop_context);
  return set_active(handle, false);
}

FAKE_EXPORT int rocprofiler_create_buffer(sdk::Handle context, size_t bytes, size_t watermark,
                                          int policy, sdk::BufferCallback callback, void *user,
                                          sdk::Handle *handle) {
  FAULT(rocprofiler_create_buffer);
  if (the_sdk().find(context) == nullptr)
    return sdk::kErrorContextNotFound;
  if (watermark > bytes || policy == 0 || callback == nullptr)
    return sdk::kErrorInvalidArgument;
  auto buffer = std::make_unique<Buffer>();
  buffer->context = context;
  buffer->id.handle = the_sdk().buffers.size() + 1;
  buffer->callback = callback;
  buffer->user = user;
  Buffer *made = buffer.get();
  buffer->blocks = std::make_unique<RecordBlocks<AnyRecord>>(
      watermark / sizeof(sdk::DispatchRecord),
      [made](std::vector<AnyRecord> &records, uint64_t dropped) {
        made->deliver(records, dropped);
      });
  *handle = buffer->id;
  the_sdk().buffers.push_back(std::move(buffer));
  return sdk::kSuccess;
}
FAKE_EXPORT int rocprofiler_destroy_buffer(sdk::Handle handle) {
  FAULT(rocprofiler_destroy_buffer);
  return the_sdk().find_buffer(handle) == nullptr ? sdk::kErrorBufferNotFound : sdk::kSuccess;
}
FAKE_EXPORT int rocprofiler_flush_buffer(sdk::Handle handle) {
  FAULT(rocprofiler_flush_buffer);
  Buffer *buffer = the_sdk().find_buffer(handle);
  if (buffer == nullptr)
    return sdk::kErrorBufferNotFound;
  buffer->blocks->flush();
  return sdk::kSuccess;
}
FAKE_EXPORT int rocprofiler_create_callback_thread(sdk::Handle *thread) {
  FAULT(rocprofiler_create_callback_thread);
  thread->handle = 1;
  return sdk::kSuccess;
}
FAKE_EXPORT int rocprofiler_assign_callback_thread(sdk::Handle buffer, sdk::Handle) {
  FAULT(rocprofiler_assign_callback_thread);
  return the_sdk().find_buffer(buffer) == nullptr ? sdk::kErrorBufferNotFound : sdk::kSuccess;
}

FAKE_EXPORT int rocprofiler_configure_callback_tracing_service(sdk::Handle handle, int kind,
                                                               const int *operations, size_t count,
                                                               sdk::TracingCallback callback,
                                                               void *user) {
  FAULT(rocprofiler_configure_callback_tracing_service);
  Context *context = the_sdk().find(handle);
  if (is_locked())
    return sdk::kErrorConfigurationLocked;
  if (context == nullptr)
    return sdk::kErrorContextNotFound;
  const bool is_new =
      context->services.try_emplace(kind, Service{set_of(operations, count), callback, user})
          .second;
  return is_new ? sdk::kSuccess : sdk::kErrorServiceAlreadyConfigured;
}
FAKE_EXPORT int rocprofiler_configure_buffer_tracing_service(sdk::Handle handle, int kind,
                                                             const int *, size_t,
                                                             sdk::Handle buffer) {
  FAULT(rocprofiler_configure_buffer_tracing_service);
  Context *context = the_sdk().find(handle);
  if (is_locked())
    return sdk::kErrorConfigurationLocked;
  if (context == nullptr)
    return sdk::kErrorContextNotFound;
  Buffer *found = the_sdk().find_buffer(buffer);
  if (found == nullptr)
    return sdk::kErrorBufferNotFound;
  const bool is_new = context->buffers.try_emplace(kind, found).second;
  return is_new ? sdk::kSuccess : sdk::kErrorServiceAlreadyConfigured;
}
FAKE_EXPORT int rocprofiler_configure_external_correlation_id_request_service(
    sdk::Handle handle, const int *, size_t, sdk::CorrelationRequest request, void *user) {
  FAULT(rocprofiler_configure_external_correlation_id_request_service);
  Context *context = the_sdk().find(handle);
  if (is_locked())
    return sdk::kErrorConfigurationLocked;
  if (context == nullptr)
    return sdk::kErrorContextNotFound;
  context->request = request;
  context->request_user = user;
  return sdk::kSuccess;
}
FAKE_EXPORT int rocprofiler_push_external_correlation_id(sdk::Handle, uint64_t, sdk::UserValue) {
  FAULT(rocprofiler_push_external_correlation_id);
  return sdk::kSuccess;
}
FAKE_EXPORT int rocprofiler_pop_external_correlation_id(sdk::Handle, uint64_t, sdk::UserValue *) {
  FAULT(rocprofiler_pop_external_correlation_id);
  return sdk::kSuccess;
}
FAKE_EXPORT int rocprofiler_at_internal_thread_create(void (*)(int, void *), void (*)(int, void *),
                                                      int, void *) {
  FAULT(rocprofiler_at_internal_thread_create);
  return sdk::kSuccess;
}

FAKE_EXPORT int rocprofiler_query_available_agents(int version, sdk::AgentsCallback callback,
                                                   size_t agent_bytes, void *user) {
  FAULT(rocprofiler_query_available_agents);
  if (version != sdk::kAgentVersion0 || agent_bytes > sdk::kAgentBytes)
    return sdk::kErrorIncompatibleAbi;
  std::vector<AgentBytes> agents = {cpu_agent()};
  for (const Gpu &gpu : machine())
    agents.push_back(gpu_agent(gpu));
  std::vector<const void *> pointers;
  for (const AgentBytes &agent : agents)
    pointers.push_back(agent.bytes);
  return callback(version, pointers.data(), pointers.size(), user);
}
