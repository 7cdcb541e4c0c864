// libcupti opened at run time: its entry points, version and what its errors mean.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/cupti/cupti_functions.h"
#include "driver/shared_library.h"

namespace proton {

/// Entry points by their names without "cupti". Those below `optional` may be null.
struct CuptiFunctions {
  cupti::function::GetVersion get_version = nullptr;
  cupti::function::GetResultString get_result_string = nullptr;
  cupti::function::Subscribe subscribe = nullptr;
  cupti::function::Unsubscribe unsubscribe = nullptr;
  cupti::function::EnableCallback enable_callback = nullptr;
  cupti::function::ActivityRegisterCallbacks activity_register_callbacks = nullptr;
  cupti::function::ActivityEnable activity_enable = nullptr;
  cupti::function::ActivityDisable activity_disable = nullptr;
  cupti::function::ActivityFlushAll activity_flush_all = nullptr;
  cupti::function::ActivityGetNextRecord activity_get_next_record = nullptr;
  cupti::function::ActivityGetNumDroppedRecords activity_get_num_dropped_records = nullptr;
  cupti::function::GetTimestamp get_timestamp = nullptr;
  // optional
  cupti::function::SubscribeV2 subscribe_v2 = nullptr;
  cupti::function::ActivityFlushPeriod activity_flush_period = nullptr;
  cupti::function::ActivityEnableHwTrace activity_enable_hw_trace = nullptr;
  cupti::function::ActivityRegisterTimestampCallback activity_register_timestamp_callback = nullptr;
  cupti::function::GetCubinCrc get_cubin_crc = nullptr;
  cupti::function::GetGraphId get_graph_id = nullptr;
  cupti::function::GetGraphExecId get_graph_exec_id = nullptr;
  cupti::function::GetGraphNodeId get_graph_node_id = nullptr;
  cupti::function::Finalize finalize = nullptr;
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
  /// Name of the present subscriber, if the library can tell; else empty.
  std::string present_subscriber() const;

private:
  SharedLibrary library_;
  CuptiFunctions functions_;
  uint32_t version_ = 0;
};

/// "12.8" of 26 and "13.0" of 130001; the number itself where it is not known.
std::string cupti_release(uint32_t version);

} // namespace proton
