// libcupti opened at run time: its entry points, version and what its errors mean.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/cupti/cupti_abi.h"
#include "driver/shared_library.h"

namespace proton::cupti {

// Types of libcupti's entry points, by their names; a null pointer of a table stands for a symbol
// that the loaded library lacks.

extern "C" {
using CallbackFunction = void (*)(void *user, int domain, uint32_t cbid, const void *data);
using BufferRequested = void (*)(uint8_t **buffer, size_t *bytes, size_t *max_records);
using BufferCompleted = void (*)(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                                 size_t valid_bytes);
using BufferRequestedV2 = void (*)(uint8_t **buffer, size_t *bytes, size_t *max_records,
                                   const void *info);
using BufferCompletedV2 = void (*)(uint8_t *buffer, size_t bytes, size_t valid_bytes,
                                   const void *info);
}

/// Parameter of cuptiSubscribe_v2 (13.0 and later), which names the present subscriber.
struct SubscriberParameters {
  size_t struct_bytes = offsetof(SubscriberParameters, allows_several); ///< as in 13.0
  const char *name = nullptr;                                           ///< ours, at most 53 bytes
  char *old_name = nullptr;   ///< of the first one, or of the one that is in the way
  size_t old_name_bytes = 0;  ///< at least 64
  uint8_t allows_several = 0; ///< 13.2 and later: other subscribers of V2 may come, or be there
  uint8_t padding[7] = {};
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
using GetTimestamp = Result (*)(uint64_t *ns);
using Finalize = Result (*)();
// Optional.
using SubscribeV2 = Result (*)(void **subscriber, CallbackFunction callback, void *user,
                               SubscriberParameters *parameters);
using ActivityRegisterCallbacksV2 = Result (*)(void *subscriber, BufferRequestedV2 requested,
                                               BufferCompletedV2 completed);
using ActivityEnableV2 = Result (*)(void *subscriber, int kind, const void *config);
using ActivityGetNextRecordV2 = Result (*)(void *subscriber, uint8_t *buffer, size_t valid_bytes,
                                           void **record);
using ActivityGetNumDroppedRecordsV2 = Result (*)(void *subscriber, void *context, uint32_t stream,
                                                  size_t *dropped);
using GetTimestampV2 = Result (*)(void *subscriber, uint64_t *ns);
using ActivityFlushPeriod = Result (*)(uint32_t milliseconds);
using ActivityEnableHwTrace = Result (*)(uint8_t enable);
extern "C" {
using TimestampSource = uint64_t (*)();
}
using ActivityRegisterTimestampCallback = Result (*)(TimestampSource source);
using GetContextId = Result (*)(void *context, uint32_t *id);
using GetGraphId = Result (*)(void *graph, uint32_t *id);
using GetGraphExecId = Result (*)(void *graph_exec, uint32_t *id);
using GetGraphNodeId = Result (*)(void *node, uint64_t *id);
using GetCubinCrc = Result (*)(CubinCrcParameters *parameters);
} // namespace function

} // namespace proton::cupti

namespace proton {

/// Entry points by their names without "cupti". Those below `optional` may be null.
struct CuptiFunctions : SymbolTable {
  using SymbolTable::SymbolTable;

  cupti::function::GetVersion get_version = need("cuptiGetVersion");
  cupti::function::GetResultString get_result_string = need("cuptiGetResultString");
  cupti::function::Subscribe subscribe = need("cuptiSubscribe");
  cupti::function::Unsubscribe unsubscribe = need("cuptiUnsubscribe");
  cupti::function::EnableCallback enable_callback = need("cuptiEnableCallback");
  cupti::function::ActivityRegisterCallbacks activity_register_callbacks =
      need("cuptiActivityRegisterCallbacks");
  cupti::function::ActivityEnable activity_enable = need("cuptiActivityEnable");
  cupti::function::ActivityDisable activity_disable = need("cuptiActivityDisable");
  cupti::function::ActivityFlushAll activity_flush_all = need("cuptiActivityFlushAll");
  cupti::function::ActivityGetNextRecord activity_get_next_record =
      need("cuptiActivityGetNextRecord");
  cupti::function::ActivityGetNumDroppedRecords activity_get_num_dropped_records =
      need("cuptiActivityGetNumDroppedRecords");
  cupti::function::GetTimestamp get_timestamp = need("cuptiGetTimestamp");
  cupti::function::SubscribeV2 subscribe_v2 = find("cuptiSubscribe_v2");
  cupti::function::ActivityRegisterCallbacksV2 activity_register_callbacks_v2 =
      find("cuptiActivityRegisterCallbacks_v2");
  cupti::function::ActivityEnableV2 activity_enable_v2 = find("cuptiActivityEnable_v2");
  cupti::function::ActivityEnableV2 activity_disable_v2 = find("cuptiActivityDisable_v2");
  cupti::function::ActivityGetNextRecordV2 activity_get_next_record_v2 =
      find("cuptiActivityGetNextRecord_v2");
  cupti::function::ActivityGetNumDroppedRecordsV2 activity_get_num_dropped_records_v2 =
      find("cuptiActivityGetNumDroppedRecords_v2");
  cupti::function::GetTimestampV2 get_timestamp_v2 = find("cuptiGetTimestamp_v2");
  cupti::function::ActivityFlushPeriod activity_flush_period = find("cuptiActivityFlushPeriod");
  cupti::function::ActivityEnableHwTrace activity_enable_hw_trace =
      find("cuptiActivityEnableHWTrace");
  cupti::function::ActivityRegisterTimestampCallback activity_register_timestamp_callback =
      find("cuptiActivityRegisterTimestampCallback");
  cupti::function::GetCubinCrc get_cubin_crc = find("cuptiGetCubinCrc");
  cupti::function::GetGraphId get_graph_id = find("cuptiGetGraphId");
  cupti::function::GetGraphExecId get_graph_exec_id = find("cuptiGetGraphExecId");
  cupti::function::GetGraphNodeId get_graph_node_id = find("cuptiGetGraphNodeId");
  cupti::function::Finalize finalize = find("cuptiFinalize");
};

class CuptiLibrary {
public:
  /// Opens the first candidate that loads and looks at its version. Throws Error(kUnavailable)
  /// when there is none, when it lacks an entry point that is needed, or when it is older than
  /// CUDA 12.4.
  static CuptiLibrary open(const std::vector<LibraryCandidate> &candidates);

  const CuptiFunctions &functions() const { return functions_; }
  /// For entry points that few callers need.
  const SharedLibrary &shared() const { return library_; }
  const std::string &path() const { return library_.path(); }
  const std::string &origin() const { return library_.origin(); }
  uint32_t version() const { return version_; }

  /// "CUPTI_ERROR_NOT_INITIALIZED (15)".
  std::string describe(cupti::Result result) const;
  /// Throws Error(kUnavailable) for every result but success: what failed, why, what to do.
  void check(cupti::Result result, const char *function) const;
  /// Whether it has all that several subscribers take (V2).
  bool has_v2() const;
  /// Subscribes by V2. `other` becomes the name of the subscriber that was first, where CUPTI
  /// tells.
  cupti::Result subscribe_v2(void *&subscriber, cupti::CallbackFunction callback, void *user,
                             bool allows_several, std::string &other) const;

private:
  SharedLibrary library_;
  CuptiFunctions functions_;
  uint32_t version_ = 0;
};

/// "12.8" of 26 and "13.0" of 130001; the number itself where it is not known.
std::string cupti_release(uint32_t version);

} // namespace proton
