// Launches that end before their function is known, because another thread is still loading it.
#include <new>

#include "collector/instrumentation/runtime/runtime.h"

namespace proton {
namespace {

constexpr const char *kUnknownFunction = "launch of a kernel without a description";
constexpr size_t kMostEarly = 256;

} // namespace

/// Triton gives a function to every thread before it reports that the function was loaded. [lock
/// held]
void InstrumentationRuntime::keep_early(uint64_t function, const void *stream,
                                        const Capture &at) noexcept {
  OpenLaunches &open = OpenLaunches::of_thread();
  OpenLaunch launch = open.newest();
  if (launch.owner != serial_ || launch.stream != stream)
    return;
  open.drop_newest();
  launch.correlation_id = copies_ ? sink_.scoped() : 0;
  try {
    if (launch.capture_id != 0 || early_.size() == kMostEarly)
      throw std::bad_alloc(); // what is captured must follow its launch at once
    early_.push_back({function, launch, at});
  } catch (const std::bad_alloc &) {
    abandon(launch);
    lose(kUnknownFunction, 1);
  }
}

/// Ends the launches of a function that is now known. [lock held]
void InstrumentationRuntime::finish_early(uint64_t function, const Kernel &kernel) noexcept {
  std::erase_if(early_, [&](const EarlyLaunch &early) {
    if (early.function != function)
      return false;
    CurrentContext current(work_->functions(), early.launch.pool->context().context());
    if (kernel && early.launch.bytes % kernel->scratch_bytes == 0)
      end(early.launch, kernel, early.at);
    else
      abandon(early.launch);
    return true;
  });
}

/// [lock held]
void InstrumentationRuntime::abandon_early() noexcept {
  for (const EarlyLaunch &early : early_) {
    abandon(early.launch);
    lose(kUnknownFunction, 1);
  }
  early_.clear();
}

} // namespace proton
