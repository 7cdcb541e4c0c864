// The entry points of libcupti that a tracing profiler calls.
#include <cstdio>

#include "library.h"
#include "pc_sampling.h"

using namespace fake;

#define FAULT(name)                                                                                \
  static EntryPoint entry_point(#name);                                                            \
  if (const int code = entry_point.called(); code != 0)                                            \
  return code

FAKE_EXPORT int cuptiGetVersion(uint32_t *answer) {
  FAULT(cuptiGetVersion);
  *answer = version();
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiGetResultString(int result, const char **text) {
  FAULT(cuptiGetResultString);
  static thread_local char name[40];
  std::snprintf(name, sizeof name, "FAKE_CUPTI_ERROR_%d", result);
  *text = name;
  return cupti::kSuccess;
}

static int subscribe(void **subscriber, cupti::CallbackFunction callback, void *user) {
  Library &self = library();
  {
    std::lock_guard lock(self.mutex);
    if (!self.other_subscriber.empty())
      return cupti::kErrorMultipleSubscribers;
  }
  if (self.is_subscribed)
    return cupti::kErrorMultipleSubscribers;
  self.user = user;
  self.callback = callback;
  self.is_subscribed = true;
  *subscriber = &self;
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiSubscribe(void **subscriber, cupti::CallbackFunction callback, void *user) {
  FAULT(cuptiSubscribe);
  return subscribe(subscriber, callback, user);
}

#ifdef FAKE_CUPTI_13
FAKE_EXPORT int cuptiSubscribe_v2(void **subscriber, cupti::CallbackFunction callback, void *user,
                                  cupti::SubscriberParameters *parameters) {
  FAULT(cuptiSubscribe_v2);
  const int result = subscribe(subscriber, callback, user);
  if (result == cupti::kErrorMultipleSubscribers && parameters != nullptr &&
      parameters->old_name != nullptr && parameters->old_name_bytes > 0) {
    std::lock_guard lock(library().mutex);
    std::snprintf(parameters->old_name, parameters->old_name_bytes, "%s",
                  library().other_subscriber.c_str());
  }
  return result;
}
#endif

FAKE_EXPORT int cuptiUnsubscribe(void *) {
  FAULT(cuptiUnsubscribe);
  library().is_subscribed = false;
  for (auto &domain : library().enabled) {
    for (auto &cbid : domain)
      cbid = false;
  }
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiEnableCallback(uint32_t enable, void *, int domain, uint32_t cbid) {
  FAULT(cuptiEnableCallback);
  if (!library().is_subscribed || domain <= 0 || domain >= kDomains || cbid >= kCbids)
    return cupti::kErrorInvalidParameter;
  library().enabled[static_cast<size_t>(domain)][cbid] = enable != 0;
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiEnableDomain(uint32_t enable, void *, int domain) {
  FAULT(cuptiEnableDomain);
  if (!library().is_subscribed || domain <= 0 || domain >= kDomains)
    return cupti::kErrorInvalidParameter;
  for (auto &cbid : library().enabled[static_cast<size_t>(domain)])
    cbid = enable != 0;
  return cupti::kSuccess;
}

static int set_kind(int kind, bool is_enabled) {
  if (kind <= 0 || kind >= kKinds)
    return cupti::kErrorInvalidKind;
  // Kernels first, samples after.
  if (is_enabled && kind == cupti::kKindConcurrentKernel && is_sampled())
    return cupti::kErrorNotCompatible;
  library().kinds[static_cast<size_t>(kind)] = is_enabled;
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiActivityEnable(int kind) {
  FAULT(cuptiActivityEnable);
  note_use();
  return set_kind(kind, true);
}

FAKE_EXPORT int cuptiActivityDisable(int kind) {
  FAULT(cuptiActivityDisable);
  return set_kind(kind, false);
}

FAKE_EXPORT int cuptiActivityEnableContext(void *, int kind) {
  FAULT(cuptiActivityEnableContext);
  return set_kind(kind, true);
}

FAKE_EXPORT int cuptiActivityDisableContext(void *, int kind) {
  FAULT(cuptiActivityDisableContext);
  return set_kind(kind, false);
}

FAKE_EXPORT int cuptiActivityRegisterCallbacks(cupti::BufferRequested requested,
                                               cupti::BufferCompleted completed) {
  FAULT(cuptiActivityRegisterCallbacks);
  library().delivery.register_callbacks(requested, completed);
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiActivityFlushAll(uint32_t) {
  FAULT(cuptiActivityFlushAll);
  library().delivery.flush();
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiActivityFlushPeriod(uint32_t milliseconds) {
  FAULT(cuptiActivityFlushPeriod);
  library().delivery.set_period(milliseconds);
  return cupti::kSuccess;
}

static size_t bytes_at(const uint8_t *record) {
  const int kind = cupti::read<int>(record, cupti::record_offset::kKind);
  return kind <= 0 || kind >= kKinds ? 0 : library().record_bytes[static_cast<size_t>(kind)].load();
}

FAKE_EXPORT int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record) {
  FAULT(cuptiActivityGetNextRecord);
  uint8_t *next = buffer;
  if (*record != nullptr)
    next = static_cast<uint8_t *>(*record) + bytes_at(static_cast<uint8_t *>(*record));
  if (next >= buffer + valid)
    return cupti::kErrorMaxLimitReached;
  if (bytes_at(next) == 0 || next + bytes_at(next) > buffer + valid)
    return cupti::kErrorInvalidKind;
  *record = next;
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiActivityGetNumDroppedRecords(void *, uint32_t, size_t *dropped) {
  FAULT(cuptiActivityGetNumDroppedRecords);
  *dropped = library().delivery.take_dropped();
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiActivitySetAttribute(int attribute, size_t *bytes, void *value) {
  FAULT(cuptiActivitySetAttribute);
  uint64_t number = 0;
  if (bytes == nullptr || value == nullptr || *bytes > sizeof number)
    return cupti::kErrorInvalidParameter;
  std::memcpy(&number, value, *bytes);
  std::lock_guard lock(library().mutex);
  library().attributes[attribute] = number;
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiActivityGetAttribute(int attribute, size_t *bytes, void *value) {
  FAULT(cuptiActivityGetAttribute);
  std::lock_guard lock(library().mutex);
  const uint64_t number = library().attributes[attribute];
  if (bytes == nullptr || value == nullptr || *bytes > sizeof number)
    return cupti::kErrorInvalidParameter;
  std::memcpy(value, &number, *bytes);
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiActivityRegisterTimestampCallback(cupti::function::TimestampSource source) {
  FAULT(cuptiActivityRegisterTimestampCallback);
  library().timestamp = source;
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiGetTimestamp(uint64_t *ns) {
  FAULT(cuptiGetTimestamp);
  library_time(*ns);
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiFinalize() {
  FAULT(cuptiFinalize);
  library().is_subscribed = false;
  for (auto &kind : library().kinds)
    kind = false;
  look_at_all_modules();
  return cupti::kSuccess;
}

#define ID_ENTRY(name, kind, type)                                                                 \
  FAKE_EXPORT int name(void *value, type *id) {                                                    \
    FAULT(name);                                                                                   \
    if (id == nullptr || !is_handle(kind, value))                                                  \
      return cupti::kErrorInvalidParameter;                                                        \
    *id = static_cast<type>(id_of(value));                                                         \
    return cupti::kSuccess;                                                                        \
  }
ID_ENTRY(cuptiGetContextId, kContextHandle, uint32_t)
ID_ENTRY(cuptiGetGraphId, kGraphHandle, uint32_t)
ID_ENTRY(cuptiGetGraphExecId, kExecHandle, uint32_t)

FAKE_EXPORT int cuptiGetGraphNodeId(void *node, uint64_t *id) {
  FAULT(cuptiGetGraphNodeId);
  if (id == nullptr || !is_handle(kNodeHandle, node))
    return cupti::kErrorInvalidParameter;
  *id = node_id_of(node);
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiGetStreamIdEx(void *, void *stream, uint8_t, uint32_t *id) {
  FAULT(cuptiGetStreamIdEx);
  *id = stream == nullptr ? 7 : static_cast<uint32_t>(id_of(stream));
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiGetStreamId(void *context, void *stream, uint32_t *id) {
  FAULT(cuptiGetStreamId);
  return cuptiGetStreamIdEx(context, stream, 0, id);
}

FAKE_EXPORT int cuptiGetDeviceId(void *, uint32_t *id) {
  FAULT(cuptiGetDeviceId);
  *id = 0;
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiGetCubinCrc(cupti::CubinCrcParameters *parameters) {
  FAULT(cuptiGetCubinCrc);
  parameters->crc = crc_of(parameters->cubin, parameters->cubin_size);
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiActivityPushExternalCorrelationId(int, uint64_t) {
  FAULT(cuptiActivityPushExternalCorrelationId);
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiActivityPopExternalCorrelationId(int, uint64_t *last) {
  FAULT(cuptiActivityPopExternalCorrelationId);
  if (last != nullptr)
    *last = 0;
  return cupti::kSuccess;
}

#define ACCEPTED(name, parameters)                                                                 \
  FAKE_EXPORT int name parameters {                                                                \
    FAULT(name);                                                                                   \
    return cupti::kSuccess;                                                                        \
  }
ACCEPTED(cuptiActivityEnableHWTrace, (uint8_t))
ACCEPTED(cuptiActivityEnableLatencyTimestamps, (uint8_t))
ACCEPTED(cuptiActivityEnableDriverApi, (uint32_t, uint8_t))
ACCEPTED(cuptiActivityEnableRuntimeApi, (uint32_t, uint8_t))
