#include "driver/cuda/nvtx_client.h"

#include <cstddef>
#include <cstdint>

#include "driver/shared_library.h"
#include "support/error.h"

namespace proton {
namespace {

// The ABI of NVTX 3, from its public headers nvToolsExt/nvtxInitDecls.h and nvtxTypes.h.
enum ExportTable : uint32_t { kCallbacks = 1, kVersionInfo = 3 };
enum CoreFunction : size_t { kRangePushA = 9, kRangePop = 11, kCoreSize = 16 };
constexpr int kCoreModule = 1;
constexpr uint32_t kNvtxVersion = 3;

extern "C" {
using AnyFunction = void (*)();
struct CallbacksTable {
  size_t struct_bytes;
  int (*module_functions)(int module, AnyFunction ***functions, unsigned *count);
};
struct VersionTable {
  size_t struct_bytes;
  uint32_t version;
  uint32_t reserved;
  void (*set_injection_version)(uint32_t version);
};
using GetTable = const void *(*)(uint32_t id);
using Initialize = int (*)(GetTable get_table);
}

// The receiver writes these; a process has one.
AnyFunction g_functions[kCoreSize];
AnyFunction *g_places[kCoreSize];

int module_functions(int module, AnyFunction ***functions, unsigned *count) {
  if (module != kCoreModule)
    return 0;
  *functions = g_places;
  *count = kCoreSize;
  return 1;
}

void set_injection_version(uint32_t) {}

const void *get_table(uint32_t id) {
  static const CallbacksTable callbacks{sizeof callbacks, module_functions};
  static const VersionTable version{sizeof version, kNvtxVersion, 0, set_injection_version};
  return id == kCallbacks     ? static_cast<const void *>(&callbacks)
         : id == kVersionInfo ? static_cast<const void *>(&version)
                              : nullptr;
}

} // namespace

bool NvtxClient::open(const std::string &path) {
  if (push_ && pop_)
    return true;
  for (size_t i = 1; i < kCoreSize; ++i)
    g_places[i] = &g_functions[i];
  Initialize initialize = nullptr;
  AnyFunction subscribe = nullptr;
  try {
    SharedLibrary library = SharedLibrary::open("the receiver of NVTX calls", {{path, "NVTX"}}, "");
    if (library.resolve("cuptiSubscribe", subscribe) ||
        !library.resolve("InitializeInjectionNvtx2", initialize))
      return false;
  } catch (const Error &) {
    return false;
  }
  if (initialize(get_table) == 0)
    return false;
  push_ = reinterpret_cast<Push>(g_functions[kRangePushA]);
  pop_ = reinterpret_cast<Pop>(g_functions[kRangePop]);
  return push_ && pop_;
}

} // namespace proton
