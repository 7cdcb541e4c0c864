// Types of roctracer's entry points, by their names; see driver/roctracer/roctracer_abi.h.
#pragma once

#include "driver/roctracer/roctracer_abi.h"

namespace proton::roctracer {

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
using OpString = const char *(*)(uint32_t domain, uint32_t op, uint32_t kind);
using SetProperties = Status (*)(uint32_t domain, void *properties);
using EnableOpCallback = Status (*)(uint32_t domain, uint32_t op, ApiCallback callback, void *user);
using DisableOpCallback = Status (*)(uint32_t domain, uint32_t op);
using EnableDomainCallback = Status (*)(uint32_t domain, ApiCallback callback, void *user);
using DisableDomainCallback = Status (*)(uint32_t domain);
using OpenPool = Status (*)(const PoolProperties *properties);
using ClosePool = Status (*)();
/// As OpenPool and ClosePool, for a pool of our own beside the default one of another tool.
using OpenPoolExpl = Status (*)(const PoolProperties *properties, void **pool);
using ClosePoolExpl = Status (*)(void *pool);
using EnableDomainActivity = Status (*)(uint32_t domain);
using EnableDomainActivityExpl = Status (*)(uint32_t domain, void *pool);
using EnableOpActivity = Status (*)(uint32_t domain, uint32_t op);
using EnableOpActivityExpl = Status (*)(uint32_t domain, uint32_t op, void *pool);
using DisableDomainActivity = Status (*)(uint32_t domain);
using DisableOpActivity = Status (*)(uint32_t domain, uint32_t op);
/// Stops at the first record that is not finished.
using FlushActivity = Status (*)();
using FlushActivityExpl = Status (*)(void *pool);
using NextRecord = Status (*)(const Record *record, const Record **next);
using GetTimestamp = Status (*)(uint64_t *ns);
using Start = void (*)();
using Stop = void (*)();
} // namespace function

} // namespace proton::roctracer
