// What CUPTI itself costs: records of kernels and copies, launch callbacks that do nothing.
//
// Buffers are of the size that the profiler takes. What is in them is not read; their valid bytes
// are summed, to show that kernels were recorded.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <vector>

#include "driver/cupti/cupti_abi.h"
#include "driver/cupti/cupti_library.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace cupti = proton::cupti;

namespace {

constexpr size_t kBufferBytes = 1 << 20;
constexpr size_t kAlignment = 64;

constexpr uint32_t kGraphLaunches[] = {cupti::kCuGraphLaunch, cupti::kCuGraphLaunchPtsz};

std::mutex g_mutex;
std::vector<uint8_t *> g_free;
std::atomic<uint64_t> g_bytes{0};
void *g_library = nullptr;
void *g_subscriber = nullptr;
std::vector<int> g_kinds;

template <typename Function> Function find(const char *name) {
  return reinterpret_cast<Function>(dlsym(g_library, name));
}

extern "C" {

void callback(void *, int, uint32_t, const void *) {}

void requested(uint8_t **buffer, size_t *bytes, size_t *max_records) {
  *bytes = kBufferBytes;
  *max_records = 0;
  std::lock_guard lock(g_mutex);
  if (g_free.empty()) {
    *buffer = static_cast<uint8_t *>(std::aligned_alloc(kAlignment, kBufferBytes));
  } else {
    *buffer = g_free.back();
    g_free.pop_back();
  }
}

void completed(void *, uint32_t, uint8_t *buffer, size_t, size_t valid_bytes) {
  g_bytes.fetch_add(valid_bytes, std::memory_order_relaxed);
  std::lock_guard lock(g_mutex);
  g_free.push_back(buffer);
}
}

} // namespace

/// Starts on the libcupti at `path`; `whole_graphs` asks for one record per launch of a graph.
/// Returns null, or the name of the entry point that failed.
EXPORT const char *floor_start(const char *path, int whole_graphs) {
  using namespace cupti::function;
  g_library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!g_library)
    return dlerror();
  g_bytes = 0;
  g_kinds = {cupti::kKindMemcpy, cupti::kKindMemcpyPeer, cupti::kKindMemset};
  g_kinds.push_back(whole_graphs ? cupti::kKindGraphTrace : cupti::kKindConcurrentKernel);
  auto subscribe = find<Subscribe>("cuptiSubscribe");
  auto enable_callback = find<EnableCallback>("cuptiEnableCallback");
  auto register_callbacks = find<ActivityRegisterCallbacks>("cuptiActivityRegisterCallbacks");
  auto enable = find<ActivityEnable>("cuptiActivityEnable");
  if (!subscribe || !enable_callback || !register_callbacks || !enable)
    return "dlsym";
  if (subscribe(&g_subscriber, callback, nullptr) != cupti::kSuccess)
    return "cuptiSubscribe";
  if (register_callbacks(requested, completed) != cupti::kSuccess)
    return "cuptiActivityRegisterCallbacks";
  auto is_enabled = [&](uint32_t cbid) {
    return enable_callback(1, g_subscriber, cupti::kDomainDriver, cbid) == cupti::kSuccess;
  };
  if (!std::ranges::all_of(cupti::kLaunchCalls, is_enabled) ||
      !std::ranges::all_of(kGraphLaunches, is_enabled))
    return "cuptiEnableCallback";
  auto is_recorded = [&](int kind) { return enable(kind) == cupti::kSuccess; };
  return std::ranges::all_of(g_kinds, is_recorded) ? nullptr : "cuptiActivityEnable";
}

/// Has everything delivered and switches CUPTI off; returns the bytes of all records.
EXPORT uint64_t floor_stop() {
  using namespace cupti::function;
  auto flush = find<ActivityFlushAll>("cuptiActivityFlushAll");
  flush(0);
  for (int kind : g_kinds)
    find<ActivityDisable>("cuptiActivityDisable")(kind);
  flush(cupti::kFlushForced);
  find<Unsubscribe>("cuptiUnsubscribe")(g_subscriber);
  return g_bytes;
}
