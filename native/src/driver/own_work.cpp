#include "driver/own_work.h"

#include <cstdint>
#include <cstring>

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

} // namespace proton
