// Turns the data of one callback into a flat stream::Call.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "driver/cuda/cuda_abi.h"
#include "driver/cupti/cupti_abi.h"
#include "driver/cupti/cupti_library.h"
#include "stream_log.h"

namespace recording {

namespace cuda = proton::cuda;
namespace cupti = proton::cupti;

class CallReader {
public:
  /// Finds the optional entry points that give ids for handles.
  void bind(void *library);
  void read(StreamLog &log, int domain, uint32_t cbid, const void *data);

  /// Calls that the recording leaves out: their names and how often they were entered.
  std::map<std::string, uint64_t> unrecorded();

private:
  using GetStreamIdEx = cupti::Result (*)(void *context, void *stream, uint8_t per_thread,
                                          uint32_t *id);

  template <typename Function> void find(void *library, const char *name, Function &function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
  }

  static bool is_recorded(std::string_view name);
  bool read_api(StreamLog &log, stream::Call &call, const cupti::CallbackData &data);
  void read_parameters(StreamLog &log, stream::Call &call, const cupti::CallbackData &data);
  void read_capture(StreamLog &log, stream::Call &call, const cupti::CallbackData &data);
  void read_change(stream::Call &call, const cupti::CallbackData &data);

  template <typename Launch>
  void read_shape(StreamLog &log, stream::Call &call, const Launch &launch, void *context) {
    for (int axis = 0; axis < 3; ++axis) {
      call.grid[axis] = launch.grid[axis];
      call.block[axis] = launch.block[axis];
    }
    call.shared_bytes = launch.shared_bytes;
    call.stream = log.stream_number(launch.stream);
    call.stream_id = ~0U;
    if (call.site == cupti::kExit && call.result == 0 && captures_ == 0 && stream_id_ != nullptr)
      stream_id_(context, launch.stream, 0, &call.stream_id);
  }

  void read_resource(StreamLog &log, stream::Call &call, const cupti::ResourceData &data);
  void read_module(stream::Call &call, const cupti::ModuleResourceData &module);

  /// Reads only the fields that a callback of this id has.
  void read_graph(stream::Call &call, const cupti::GraphData &data);
  void read_nvtx(StreamLog &log, stream::Call &call, const cupti::NvtxData &data);
  void read_attributes(StreamLog &log, stream::Call &call, const void *attributes);

  template <typename Function> static uint32_t id(Function function, void *handle) {
    uint32_t value = 0;
    if (function != nullptr && handle != nullptr && function(handle, &value) != cupti::kSuccess)
      value = 0;
    return value;
  }

  cupti::function::GetGraphId graph_id_ = nullptr;
  cupti::function::GetGraphExecId graph_exec_id_ = nullptr;
  cupti::function::GetGraphNodeId node_id_ = nullptr;
  cupti::function::GetContextId context_id_ = nullptr;
  GetStreamIdEx stream_id_ = nullptr;
  cupti::function::GetCubinCrc cubin_crc_ = nullptr;
  std::atomic<int> captures_{0}; // asking for the id of a stream might end its capture
  std::mutex mutex_;
  std::map<std::string, uint64_t> unrecorded_;
};

} // namespace recording
