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

// Which calls the calling thread may make while graphs are captured.

/// CU_STREAM_CAPTURE_MODE_RELAXED, and HIP's: the thread may allocate, query events and wait for
/// streams that are not captured.
inline constexpr int kCaptureModeRelaxed = 2;

/// Sets the thread's mode, for libraries that the target calls on our behalf, and returns the one
/// before; -1 if no driver that knows modes is loaded. [any thread]
int exchange_capture_mode(int mode) noexcept;

} // namespace proton
