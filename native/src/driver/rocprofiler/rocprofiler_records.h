// Records of rocprofiler-sdk and what its callbacks carry (CallbackRecord::payload). Compared with
// AMD's headers, where they are found, by a test (tests/native/driver).
#pragma once

#include "driver/rocprofiler/rocprofiler_abi.h"

namespace proton::rocprofiler {

struct DispatchInfo { // rocprofiler_kernel_dispatch_info_t: 128 bytes, for ever
  uint64_t size;
  Id agent;
  Id queue;
  uint64_t kernel;
  uint64_t dispatch;
  uint32_t private_segment_bytes;
  uint32_t group_segment_bytes;
  uint32_t block[3];      ///< work items of a workgroup
  uint32_t work_items[3]; ///< of the whole grid
  uint8_t reserved[56];
};

struct DispatchRecord { // kBufferKernelDispatch
  uint64_t size;
  int kind;
  int operation;
  AsyncCorrelationId correlation;
  uint64_t thread;
  uint64_t start_ns;
  uint64_t end_ns;
  DispatchInfo dispatch;
};

/// kBufferMemoryCopy. Not among the headers of Triton's wheel: from the vendor's own, 1.0 and
/// later.
struct CopyRecord {
  uint64_t size;
  int kind;
  int operation; ///< CopyOperation
  AsyncCorrelationId correlation;
  uint64_t thread;
  uint64_t start_ns;
  uint64_t end_ns;
  Id target_agent;
  Id source_agent;
  uint64_t bytes;
  uint64_t target_address;
  uint64_t source_address;
};

/// kCallbackHipStream. Not among the headers of Triton's wheel, as CopyRecord.
struct HipStreamData {
  uint64_t size;
  Id stream;             ///< the library's own number of the stream; 0 is the null stream
  uint64_t stream_value; ///< hipStream_t
};

struct KernelSymbolData { // kKernelSymbolRegister
  uint64_t size;
  uint64_t kernel; ///< DispatchInfo::kernel
  uint64_t code_object;
  const char *name; ///< "name.kd" or "name"; lives as long as the code object
  uint64_t kernel_object;
  uint32_t kernarg_bytes;
  uint32_t kernarg_alignment;
  uint32_t group_segment_bytes;
  uint32_t private_segment_bytes;
  uint32_t scalar_registers;
  uint32_t vector_registers;
  uint32_t accumulation_registers;
  int64_t entry_offset;
  uint64_t address;
};

struct CodeObjectData { // kCodeObjectLoad
  uint64_t size;
  uint64_t code_object;
  Id agent;
  Id hsa_agent;
  const char *uri;
  uint64_t load_base;
  uint64_t load_bytes;
  int64_t load_delta;
  int storage; ///< 1: a file, 2: memory
  uint64_t memory_base;
  uint64_t memory_bytes;
};

struct MarkerData { // kCallbackMarkerCoreApi
  uint64_t size;
  union {
    const char *message; ///< of mark, push and start
    uint64_t range_id;   ///< of stop
  };
  uint64_t second_argument;
  int64_t answer; ///< on exit; of start the id of the range
};

} // namespace proton::rocprofiler
