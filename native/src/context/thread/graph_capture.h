// Whether work is captured into a graph: by the calling thread, for metrics; by any thread, for
// whoever would wait for a device.
#pragma once

#include <cstddef>
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

/// Collectors tell of a capture that is about to begin, before the driver hears of it. Waits for
/// those who wait for devices. [any thread, no lock held]
void capture_begins() noexcept;
/// Same for one that is open already: nobody is waited for. [any thread]
void capture_found() noexcept;
/// So many of the captures that began came to their end, or never were. [any thread]
void captures_ended(size_t count) noexcept;
/// Whether some thread captures. [any thread]
bool any_capture_open() noexcept;
/// In the child, which captures nothing.
void forget_captures_after_fork() noexcept;

/// To be held by whoever waits for a device, or has a vendor's library do so: a driver ends every
/// capture that is open then, in any mode, from any thread. While one that is allowed lives, no
/// capture begins.
class DeviceWait {
public:
  DeviceWait() noexcept;
  ~DeviceWait();
  DeviceWait(const DeviceWait &) = delete;
  DeviceWait &operator=(const DeviceWait &) = delete;
  /// False: some thread captures, so nobody may wait.
  bool is_allowed() const noexcept { return is_allowed_; }

private:
  bool is_allowed_;
};

} // namespace proton
