// Our own description of ROCTX as roctracer's callbacks, rocprofiler-sdk's callbacks and libroctx64
// itself hand it over. Compared with AMD's headers, where they are found, by a test
// (tests/native/driver).
#pragma once

#include <cstdint>

namespace proton::roctx {

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
