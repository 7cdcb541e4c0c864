#include "driver/capture_mode.h"

#include <dlfcn.h>

#include <atomic>
#include <initializer_list>

namespace proton {
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
