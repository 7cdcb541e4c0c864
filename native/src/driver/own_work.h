// Device work of the profiler itself, which does not belong to the target.
#pragma once

namespace proton {

/// What the calling thread launches and copies from here on is the profiler's own. Nests.
void begin_own_work() noexcept;
void end_own_work() noexcept;
bool is_own_work() noexcept;

/// Same for as long as it lives.
class OwnWork {
public:
  OwnWork() noexcept { begin_own_work(); }
  ~OwnWork() { end_own_work(); }
  OwnWork(const OwnWork &) = delete;
  OwnWork &operator=(const OwnWork &) = delete;
};

/// Whether a kernel of this name is the profiler's own. A graph runs it without a launch of its
/// own, on whichever thread launches the graph: there only the name tells.
bool is_own_kernel(const char *name) noexcept;

} // namespace proton
