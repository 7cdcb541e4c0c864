// libroctracer64 opened at run time: its entry points, version and what its errors mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "driver/shared_library.h"

// Our own description of the part of roctracer's ABI (libroctracer64, 4.1) that is used here.
// AMD's headers are not needed to build; where they are found, a test compares every number below
// with them (tests/native/driver).

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
  kDomainHipOps = 2,
  kDomainHipApi = 3,
  kDomainRoctx = 6,
};

enum Phase : uint32_t { kEnter = 0, kExit = 1 }; // activity_api_phase_t

enum HipOp : uint32_t { kOpDispatch = 0, kOpCopy = 1, kOpBarrier = 2 };

/// Record::kind of kDomainHipOps; the numbers are those of OpenCL's commands.
enum CommandKind : uint32_t {
  kCommandKernel = 0x11F0,
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

namespace proton::roctracer {

// Types of roctracer's entry points, by their names; see driver/roctracer/roctracer_abi.h.

extern "C" {
/// [the calling thread of the API] `data` is HipApiData of kDomainHipApi and roctx::CallbackData
/// of kDomainRoctx.
using ApiCallback = void (*)(uint32_t domain, uint32_t operation, const void *data, void *user);
/// [thread of the library, or one that flushes] Records lie between `begin` and `end`.
using BufferCallback = void (*)(const char *begin, const char *end, void *user);
/// Like realloc: `*block` null allocates, 0 bytes frees.
using Allocator = void (*)(char **block, size_t bytes, void *user);
}

struct PoolProperties { // roctracer_properties_t
  uint32_t mode = 0;
  size_t buffer_bytes = 0;
  Allocator allocator = nullptr; ///< null: the library's own
  void *allocator_user = nullptr;
  BufferCallback buffer_callback = nullptr;
  void *buffer_user = nullptr;
};

namespace function {
using VersionMajor = uint32_t (*)();
using VersionMinor = uint32_t (*)();
using ErrorString = const char *(*)(); ///< of the calling thread's last failure; may be null
using EnableOpCallback = Status (*)(uint32_t domain, uint32_t op, ApiCallback callback, void *user);
using DisableOpCallback = Status (*)(uint32_t domain, uint32_t op);
using EnableDomainCallback = Status (*)(uint32_t domain, ApiCallback callback, void *user);
using DisableDomainCallback = Status (*)(uint32_t domain);
/// As OpenPool and ClosePool, for a pool of our own beside the default one of another tool.
using OpenPoolExpl = Status (*)(const PoolProperties *properties, void **pool);
using ClosePoolExpl = Status (*)(void *pool);
using EnableDomainActivityExpl = Status (*)(uint32_t domain, void *pool);
using DisableDomainActivity = Status (*)(uint32_t domain);
using FlushActivityExpl = Status (*)(void *pool);
using NextRecord = Status (*)(const Record *record, const Record **next);
using GetTimestamp = Status (*)(uint64_t *ns);
using Start = void (*)();
using Stop = void (*)();
} // namespace function

} // namespace proton::roctracer

namespace proton {

/// Entry points by their names without "roctracer_". Those below `optional` may be null.
struct RoctracerFunctions : SymbolTable {
  using SymbolTable::SymbolTable;

  roctracer::function::EnableOpCallback enable_op_callback = need("roctracer_enable_op_callback");
  roctracer::function::DisableOpCallback disable_op_callback =
      need("roctracer_disable_op_callback");
  roctracer::function::EnableDomainCallback enable_domain_callback =
      need("roctracer_enable_domain_callback");
  roctracer::function::DisableDomainCallback disable_domain_callback =
      need("roctracer_disable_domain_callback");
  roctracer::function::OpenPoolExpl open_pool = need("roctracer_open_pool_expl");    ///< ..._expl
  roctracer::function::ClosePoolExpl close_pool = need("roctracer_close_pool_expl"); ///< ..._expl
  roctracer::function::EnableDomainActivityExpl enable_domain_activity =
      need("roctracer_enable_domain_activity_expl"); ///< ..._expl
  roctracer::function::DisableDomainActivity disable_domain_activity =
      need("roctracer_disable_domain_activity");
  roctracer::function::FlushActivityExpl flush_activity =
      need("roctracer_flush_activity_expl"); ///< ..._expl
  roctracer::function::NextRecord next_record = need("roctracer_next_record");
  roctracer::function::GetTimestamp get_timestamp = need("roctracer_get_timestamp");
  roctracer::function::ErrorString error_string = find("roctracer_error_string");
  roctracer::function::VersionMajor version_major = find("roctracer_version_major");
  roctracer::function::VersionMinor version_minor = find("roctracer_version_minor");
  roctracer::function::Start start = find("roctracer_start");
  roctracer::function::Stop stop = find("roctracer_stop");
};

class RoctracerLibrary {
public:
  /// Opens the first candidate that loads. Throws Error(kUnavailable) when there is none, when it
  /// lacks an entry point that is needed, or when it is older than 4.1.
  static RoctracerLibrary open(const std::vector<LibraryCandidate> &candidates);

  const RoctracerFunctions &functions() const { return functions_; }
  const std::string &path() const { return library_.path(); }
  const std::string &origin() const { return library_.origin(); }
  /// E.g. "4.1"; empty where the library does not say.
  std::string version() const;

  /// "ROCTRACER_STATUS_ERROR_MEMORY_ALLOCATION (-6)", and the library's own text where it has one.
  std::string describe(roctracer::Status status) const;
  /// Throws Error(kUnavailable) for every status but success: what failed, why, what to do.
  void check(roctracer::Status status, const char *function) const;

private:
  SharedLibrary library_;
  RoctracerFunctions functions_;
};

} // namespace proton
