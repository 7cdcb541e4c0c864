// Types of libcupti's entry points, by their names; a null pointer of a table stands for a symbol
// that the loaded library lacks.
#pragma once

#include "driver/cupti/cupti_abi.h"

namespace proton::cupti {

extern "C" {
using CallbackFunction = void (*)(void *user, int domain, uint32_t cbid, const void *data);
using BufferRequested = void (*)(uint8_t **buffer, size_t *bytes, size_t *max_records);
using BufferCompleted = void (*)(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                                 size_t valid_bytes);
}

/// Parameter of cuptiSubscribe_v2 (13.0 and later), which names the present subscriber.
struct SubscriberParameters {
  size_t struct_bytes = sizeof(SubscriberParameters);
  const char *name = nullptr; ///< ours, at most 53 bytes
  char *old_name = nullptr;   ///< written on kErrorMultipleSubscribers
  size_t old_name_bytes = 0;  ///< at least 64
};

/// Parameter of cuptiGetCubinCrc.
struct CubinCrcParameters {
  size_t struct_bytes = sizeof(CubinCrcParameters);
  size_t cubin_size = 0;
  const void *cubin = nullptr;
  uint64_t crc = 0; ///< answer
};

namespace function {
// Required: present in every library from 12.4 on.
using GetVersion = Result (*)(uint32_t *version);
using GetResultString = Result (*)(Result result, const char **text); ///< text may stay null
using Subscribe = Result (*)(void **subscriber, CallbackFunction callback, void *user);
using Unsubscribe = Result (*)(void *subscriber);
using EnableCallback = Result (*)(uint32_t enable, void *subscriber, int domain, uint32_t cbid);
using EnableDomain = Result (*)(uint32_t enable, void *subscriber, int domain);
using ActivityRegisterCallbacks = Result (*)(BufferRequested requested, BufferCompleted completed);
using ActivityEnable = Result (*)(int kind);
using ActivityDisable = Result (*)(int kind);
using ActivityFlushAll = Result (*)(uint32_t flag);
using ActivityGetNextRecord = Result (*)(uint8_t *buffer, size_t valid_bytes, void **record);
using ActivityGetNumDroppedRecords = Result (*)(void *context, uint32_t stream, size_t *dropped);
using ActivitySetAttribute = Result (*)(int attribute, size_t *bytes, void *value);
using ActivityGetAttribute = Result (*)(int attribute, size_t *bytes, void *value);
using GetTimestamp = Result (*)(uint64_t *ns);
using Finalize = Result (*)();
// Optional.
using SubscribeV2 = Result (*)(void **subscriber, CallbackFunction callback, void *user,
                               SubscriberParameters *parameters);
using ActivityFlushPeriod = Result (*)(uint32_t milliseconds);
using ActivityEnableHwTrace = Result (*)(uint8_t enable);
using ActivityEnableLatencyTimestamps = Result (*)(uint8_t enable);
extern "C" {
using TimestampSource = uint64_t (*)();
}
using ActivityRegisterTimestampCallback = Result (*)(TimestampSource source);
using ActivityEnableDriverApi = Result (*)(uint32_t cbid, uint8_t enable); ///< from 12.6
using GetContextId = Result (*)(void *context, uint32_t *id);
using GetStreamId = Result (*)(void *context, void *stream, uint32_t *id);
using GetDeviceId = Result (*)(void *context, uint32_t *id);
using GetGraphId = Result (*)(void *graph, uint32_t *id);
using GetGraphExecId = Result (*)(void *graph_exec, uint32_t *id);
using GetGraphNodeId = Result (*)(void *node, uint64_t *id);
using GetCubinCrc = Result (*)(CubinCrcParameters *parameters);
using PushExternalCorrelationId = Result (*)(int kind, uint64_t id);
using PopExternalCorrelationId = Result (*)(int kind, uint64_t *last);
} // namespace function

} // namespace proton::cupti
