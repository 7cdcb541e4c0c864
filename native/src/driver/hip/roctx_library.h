// libroctx64 opened at run time: the source of ranges where no profiler library reports them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/shared_library.h"

namespace proton::roctx {

// Our own description of ROCTX as roctracer's callbacks, rocprofiler-sdk's callbacks and libroctx64
// itself hand it over. Compared with AMD's headers, where they are found, by a test
// (tests/native/driver).

enum Operation : uint32_t { // roctx_api_id_t and rocprofiler_marker_core_api_id_t
  kMark = 0,
  kRangePush = 1,
  kRangePop = 2,
  kRangeStart = 3,
  kRangeStop = 4,
};

/// roctx_api_data_t. Of kRangePop the message is null, of kRangeStop it is that of the start.
struct CallbackData {
  const char *message;
  uint64_t range_id; ///< of kRangeStart and kRangeStop
};

extern "C" {
/// Called before the operation. The answer is ignored by libroctx64 of roctracer.
using TracerCallback = int (*)(uint32_t domain, uint32_t operation, void *data);
}

namespace function {
using Mark = void (*)(const char *message);
using RangePush = int (*)(const char *message);
using RangePop = int (*)();
using RangeStart = uint64_t (*)(const char *message);
using RangeStop = void (*)(uint64_t range_id);
/// roctxRegisterTracerCallback of libroctx64; null leaves it. Only one callback is kept.
using RegisterTracerCallback = void (*)(TracerCallback callback);
} // namespace function

} // namespace proton::roctx

namespace proton {

class RoctxLibrary {
public:
  /// Throws Error(kUnavailable) where none of the candidates loads.
  static RoctxLibrary open(const std::vector<LibraryCandidate> &candidates);

  const std::string &path() const { return library_.path(); }
  const std::string &origin() const { return library_.origin(); }
  /// Has the callback called before every operation; null removes it. The library keeps one
  /// callback only. Returns false on failure.
  bool set_callback(roctx::TracerCallback callback) const noexcept;

private:
  SharedLibrary library_;
  roctx::function::RegisterTracerCallback register_callback_ = nullptr;
};

} // namespace proton
