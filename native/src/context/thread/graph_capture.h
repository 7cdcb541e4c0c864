// Whether work is being captured into a graph: by the calling thread, for its metrics; by any
// thread, for code that would wait for a device.
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

/// The capture of the calling thread; null if it captures nothing. Set by collectors.
OpenCapture *open_capture() noexcept;
void set_open_capture(OpenCapture *capture) noexcept;
inline bool is_capturing() noexcept {
  OpenCapture *capture = open_capture();
  return capture && capture->is_open();
}

/// Collectors call this before the driver begins a capture. Waits until no thread waits for a
/// device. [any thread, no lock held]
void capture_begins() noexcept;
/// Same for a capture that is open already: does not wait. [any thread]
void capture_found() noexcept;
/// This many captures that began have ended, or were refused. [any thread]
void captures_ended(size_t count) noexcept;
/// Whether any thread captures. [any thread]
bool any_capture_open() noexcept;
/// Called in a forked child, which captures nothing.
void forget_captures_after_fork() noexcept;

/// Hold one while waiting for a device, directly or through a vendor's library: the wait makes a
/// driver end every open capture, in any mode, of any thread. While an allowed one lives, no
/// capture begins.
class DeviceWait {
public:
  DeviceWait() noexcept;
  ~DeviceWait();
  DeviceWait(const DeviceWait &) = delete;
  DeviceWait &operator=(const DeviceWait &) = delete;
  /// False while a thread captures: do not wait then.
  bool is_allowed() const noexcept { return is_allowed_; }

private:
  bool is_allowed_;
};

} // namespace proton
