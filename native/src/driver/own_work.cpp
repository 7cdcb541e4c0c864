#include "driver/own_work.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace proton {
namespace {

constexpr const char *kOwnKernels[] = {"proton_bench_reduce", "proton_bench_harvest",
                                       "proton_bench_anchor", "proton_bench_empty_scopes"};

// Initial-exec: it is read in every launch, where nothing may be allocated.
[[gnu::tls_model("initial-exec")]] thread_local uint32_t t_depth = 0;

} // namespace

void begin_own_work() noexcept { ++t_depth; }

void end_own_work() noexcept { t_depth -= t_depth == 0 ? 0 : 1; }

bool is_own_work() noexcept { return t_depth != 0; }

bool is_own_kernel(const char *name) noexcept {
  for (const char *own : kOwnKernels)
    if (std::strcmp(name, own) == 0)
      return true;
  return false;
}

namespace {

using Exchange = int (*)(int *mode);

/// Null if neither driver is loaded. A driver that was found is never unloaded.
Exchange find() noexcept {
  static std::atomic<Exchange> found{nullptr};
  if (Exchange known = found.load(std::memory_order_relaxed))
    return known;
  struct Driver {
    const char *library;
    const char *function;
  };
  constexpr const char *kHip = "hipThreadExchangeStreamCaptureMode";
  for (Driver driver :
       {Driver{"libcuda.so.1", "cuThreadExchangeStreamCaptureMode"}, Driver{"libamdhip64.so", kHip},
        Driver{"libamdhip64.so.6", kHip}, Driver{"libamdhip64.so.7", kHip}}) {
    void *library = dlopen(driver.library, RTLD_LAZY | RTLD_NOLOAD);
    auto function = library ? reinterpret_cast<Exchange>(dlsym(library, driver.function)) : nullptr;
    if (!function)
      continue;
    found.store(function, std::memory_order_relaxed);
    return function;
  }
  return nullptr;
}

} // namespace

int exchange_capture_mode(int mode) noexcept {
  Exchange exchange = find();
  return exchange && exchange(&mode) == 0 ? mode : -1;
}

} // namespace proton
