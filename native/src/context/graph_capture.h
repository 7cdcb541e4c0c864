// Whether the calling thread captures work into a graph, for what is not work: metrics.
#pragma once

#include <cstdint>

namespace proton {

/// A graph that is being captured.
class OpenCapture {
public:
  virtual ~OpenCapture() = default;
  /// False once another thread has ended it. [capturing thread]
  virtual bool is_open() noexcept = 0;
  /// Values were added under capture: each launch of the graph adds them. Takes over the reference
  /// to `metrics` (a CaptureId). [capturing thread, no lock of the core held]
  virtual void add_metrics(uint32_t metrics) noexcept = 0;
};

/// That of the calling thread; null when it captures nothing. Set by collectors.
OpenCapture *open_capture() noexcept;
void set_open_capture(OpenCapture *capture) noexcept;
inline bool is_capturing() noexcept {
  OpenCapture *capture = open_capture();
  return capture && capture->is_open();
}

} // namespace proton
