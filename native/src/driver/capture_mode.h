// Which calls the calling thread may make while graphs are captured.
#pragma once

namespace proton {

/// CU_STREAM_CAPTURE_MODE_RELAXED, and HIP's: the thread may allocate, query events and wait for
/// streams that are not captured.
inline constexpr int kCaptureModeRelaxed = 2;

/// Sets the thread's mode, for libraries that the target calls on our behalf, and returns the one
/// before; -1 if no driver that knows modes is loaded. [any thread]
int exchange_capture_mode(int mode) noexcept;

} // namespace proton
