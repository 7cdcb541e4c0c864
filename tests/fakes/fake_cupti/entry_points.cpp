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

/// What belongs to an only subscriber (V1) is refused to one of several.
#define ALONE(name)                                                                                \
  FAULT(name);                                                                                     \
  if (library().is_shared)                                                                         \
  return cupti::kErrorMultipleSubscribers

static int subscribe(void **subscriber, cupti::CallbackFunction callback, void *user,
                     bool is_shared) {
  Library &self = library();
  {
    std::lock_guard lock(self.mutex);
    if (!self.other_subscriber.empty() && !(is_shared && self.other_is_shared))
      return cupti::kErrorMultipleSubscribers;
  }
  if (self.is_subscribed)
    return cupti::kErrorMultipleSubscribers;
  self.user = user;
  self.callback = callback;
  self.is_subscribed = true;
  self.is_shared = is_shared;
  *subscriber = &self;
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiSubscribe(void **subscriber, cupti::CallbackFunction callback, void *user) {
  FAULT(cuptiSubscribe);
  return subscribe(subscriber, callback, user, false);
}

#ifdef FAKE_CUPTI_13
FAKE_EXPORT int cuptiSubscribe_v2(void **subscriber, cupti::CallbackFunction callback, void *user,
                                  cupti::SubscriberParameters *parameters) {
  FAULT(cuptiSubscribe_v2);
  const bool is_shared = parameters != nullptr && parameters->struct_bytes == sizeof *parameters &&
                         parameters->allows_several != 0;
  const int result = subscribe(subscriber, callback, user, is_shared);
  if (parameters != nullptr && parameters->old_name != nullptr && parameters->old_name_bytes > 0) {
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
  library().is_shared = false;
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
  ALONE(cuptiActivityEnable);
  note_use();
  return set_kind(kind, true);
}

FAKE_EXPORT int cuptiActivityDisable(int kind) {
  ALONE(cuptiActivityDisable);
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
  ALONE(cuptiActivityRegisterCallbacks);
  library().delivery.register_callbacks(requested, completed);
  return cupti::kSuccess;
}

static std::atomic<uint64_t> forced_flushes{0};

FAKE_EXPORT uint64_t fake_cupti_other_client_forced() { return forced_flushes; }

FAKE_EXPORT int cuptiActivityFlushAll(uint32_t flag) {
  FAULT(cuptiActivityFlushAll);
  library().delivery.flush();
  library().other_delivery.flush();
  if (library().other_is_shared)
    forced_flushes += flag;
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

static int next_record(uint8_t *buffer, size_t valid, void **record) {
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

FAKE_EXPORT int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record) {
  ALONE(cuptiActivityGetNextRecord);
  return next_record(buffer, valid, record);
}

FAKE_EXPORT int cuptiActivityGetNumDroppedRecords(void *, uint32_t, size_t *dropped) {
  ALONE(cuptiActivityGetNumDroppedRecords);
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
  ALONE(cuptiActivityRegisterTimestampCallback);
  library().timestamp = source;
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiGetTimestamp(uint64_t *ns) {
  ALONE(cuptiGetTimestamp);
  library_time(*ns);
  return cupti::kSuccess;
}

#ifdef FAKE_CUPTI_13
/// What one of several subscribers has instead (V2).
#define OF_SEVERAL(name)                                                                           \
  FAULT(name);                                                                                     \
  if (subscriber != &library() || !library().is_shared)                                            \
  return cupti::kErrorInvalidParameter

static cupti::BufferRequestedV2 requested_v2;
static cupti::BufferCompletedV2 completed_v2;

FAKE_EXPORT int cuptiActivityRegisterCallbacks_v2(void *subscriber,
                                                  cupti::BufferRequestedV2 requested,
                                                  cupti::BufferCompletedV2 completed) {
  OF_SEVERAL(cuptiActivityRegisterCallbacks_v2);
  requested_v2 = requested;
  completed_v2 = completed;
  library().delivery.register_callbacks(
      [](uint8_t **buffer, size_t *bytes, size_t *most_records) {
        requested_v2(buffer, bytes, most_records, nullptr);
      },
      [](void *, uint32_t, uint8_t *buffer, size_t bytes, size_t valid) {
        completed_v2(buffer, bytes, valid, nullptr);
      });
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiActivityEnable_v2(void *subscriber, int kind, const void *) {
  OF_SEVERAL(cuptiActivityEnable_v2);
  note_use();
  return kind == cupti::kKindGraphTrace ? cupti::kErrorNotCompatible : set_kind(kind, true);
}

FAKE_EXPORT int cuptiActivityDisable_v2(void *subscriber, int kind, const void *) {
  OF_SEVERAL(cuptiActivityDisable_v2);
  return set_kind(kind, false);
}

FAKE_EXPORT int cuptiActivityGetNextRecord_v2(void *subscriber, uint8_t *buffer, size_t valid,
                                              void **record) {
  OF_SEVERAL(cuptiActivityGetNextRecord_v2);
  return next_record(buffer, valid, record);
}

FAKE_EXPORT int cuptiActivityGetNumDroppedRecords_v2(void *subscriber, void *, uint32_t,
                                                     size_t *dropped) {
  OF_SEVERAL(cuptiActivityGetNumDroppedRecords_v2);
  *dropped = library().delivery.take_dropped();
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiGetTimestamp_v2(void *subscriber, uint64_t *ns) {
  OF_SEVERAL(cuptiGetTimestamp_v2);
  library_time(*ns);
  return cupti::kSuccess;
}
#endif

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
