#include "collector/cpu/torch_observer.h"

#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <memory>

#include "collector/cpu/op_stack.h"

namespace proton {
namespace {

// The layouts below are those of libtorch 2.x: at::ObserverContext has a virtual destructor, and
// at::RecordFunctionCallback is {start, end, sampling probability, one flag per RecordScope,
// needs_inputs, needs_outputs, needs_ids}, 40 bytes.
struct ObserverContext {
  virtual ~ObserverContext() = default;
};
using StartCallback = std::unique_ptr<ObserverContext> (*)(const void *record_function);
using EndCallback = void (*)(const void *record_function, ObserverContext *context);

constexpr size_t kScopeFunction = 0, kScopeBackwardFunction = 1, kScopeUser = 7;
struct RecordFunctionCallback {
  StartCallback start = nullptr;
  EndCallback end = nullptr;
  double sampling_probability = 1.0;
  bool scopes_and_needs[16] = {};
};
static_assert(sizeof(RecordFunctionCallback) == 40);

using AddGlobalCallback = uint64_t (*)(RecordFunctionCallback);
using RemoveCallback = void (*)(uint64_t);
using NameOf = const char *(*)(const void *record_function);

AddGlobalCallback g_add = nullptr;
RemoveCallback g_remove = nullptr;
NameOf g_name_of = nullptr;
std::atomic<bool> g_self_test{false};
std::atomic<uint64_t> g_self_test_calls{0};

std::unique_ptr<ObserverContext> on_start(const void *record_function) noexcept {
  const char *name = g_name_of(record_function);
  if (g_self_test.load(std::memory_order_relaxed) && name && std::strcmp(name, "aten::empty") == 0)
    g_self_test_calls.fetch_add(1, std::memory_order_relaxed);
  begin_op(name ? name : "<unnamed operator>");
  return nullptr;
}

void on_end(const void *, ObserverContext *) noexcept { end_op(); }

template <typename Function> bool resolve(void *library, const char *symbol, Function &function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  return function != nullptr;
}

} // namespace

TorchObserver &TorchObserver::instance() {
  static TorchObserver *observer = new TorchObserver; // outlives threads of the target
  return *observer;
}

bool TorchObserver::find_symbols() {
  if (g_add && g_remove && g_name_of)
    return true;
  void *library = dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD);
  if (!library)
    return false;
  return resolve(library, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE", g_add) &&
         resolve(library, "_ZN2at14removeCallbackEm", g_remove) &&
         resolve(library, "_ZNK2at14RecordFunction4nameEv", g_name_of);
}

void TorchObserver::install() {
  if (callback_ != 0)
    return;
  RecordFunctionCallback callback;
  callback.start = on_start;
  callback.end = on_end;
  callback.scopes_and_needs[kScopeFunction] = true;
  callback.scopes_and_needs[kScopeBackwardFunction] = true;
  callback.scopes_and_needs[kScopeUser] = true;
  callback_ = g_add(callback);
}

void TorchObserver::remove() {
  if (callback_ == 0)
    return;
  g_remove(callback_);
  callback_ = 0;
}

void TorchObserver::self_test(bool on) {
  g_self_test_calls.store(0);
  g_self_test.store(on);
}

uint64_t TorchObserver::self_test_calls() const { return g_self_test_calls.load(); }

} // namespace proton
