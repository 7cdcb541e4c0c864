// Our own description of the part of roctracer's ABI (libroctracer64, 4.1) that is used here.
// AMD's headers are not needed to build; where they are found, a test compares every number below
// with them (tests/native/driver).
#pragma once

#include <cstddef>
#include <cstdint>

namespace proton::roctracer {

using Status = int; // roctracer_status_t
enum StatusCode : int {
  kSuccess = 0,
  kError = -1,
  kErrorInvalidDomain = -2,
  kErrorInvalidArgument = -3,
  kErrorDefaultPoolUndefined = -4,
  kErrorDefaultPoolAlreadyDefined = -5,
  kErrorMemoryAllocation = -6,
  kErrorMismatchedExternalCorrelation = -7,
  kErrorNotImplemented = -8,
  kUninitialized = 2,
  kBreak = 3,
  kErrorHipApi = 6,
  kErrorHipOps = 7,
  kErrorRoctx = 8,
};

enum Domain : uint32_t { // activity_domain_t
  kDomainHsaOps = 1,
  kDomainHipOps = 2,
  kDomainHipApi = 3,
  kDomainExternal = 5,
  kDomainRoctx = 6,
};

enum Phase : uint32_t { kEnter = 0, kExit = 1 }; // activity_api_phase_t

enum HipOp : uint32_t { kOpDispatch = 0, kOpCopy = 1, kOpBarrier = 2 };

/// Record::kind of kDomainHipOps; the numbers are those of OpenCL's commands.
enum CommandKind : uint32_t {
  kCommandKernel = 0x11F0,
  kCommandTask = 0x11F1,
  kCommandCopyDeviceToHost = 0x11F3,
  kCommandCopyHostToDevice = 0x11F4,
  kCommandCopyDeviceToDevice = 0x11F5,
  kCommandCopyDeviceToHostRect = 0x1201,
  kCommandCopyHostToDeviceRect = 0x1202,
  kCommandCopyDeviceToDeviceRect = 0x1203,
  kCommandFill = 0x1207,
};

/// activity_record_t. The library steps over records: never add to a pointer.
struct Record {
  uint32_t domain;
  uint32_t kind; ///< CommandKind of kDomainHipOps
  uint32_t op;   ///< HipOp of kDomainHipOps
  uint64_t correlation;
  uint64_t begin_ns;
  uint64_t end_ns;
  union {
    int device; ///< driver node of the GPU (hsa::kInfoDriverNode), no HIP ordinal
    struct {
      uint32_t process;
      uint32_t thread;
    };
    uint64_t external_correlation;
  };
  uint64_t queue;
  union {
    size_t bytes;            ///< of copies
    const char *kernel_name; ///< of kernels; lives as long as the module
  };
};

} // namespace proton::roctracer
