// The host side for collectors: whether a session is active, and where the calling thread stands.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "record/record.h"

namespace proton {

/// The state of all sessions in one word, so that a hot path needs one atomic read.
struct SessionState {
  EpochId epoch = 0;
  uint32_t generation = 0; ///< serial of the newest session, 24 bits
  bool active = false;
  bool wants_python = false;   ///< some active session has context "python"
  bool wants_times = false;    ///< some active session wants to know when scopes began and ended
  bool wants_timeline = false; ///< or when calls that launch returned
  bool wants_layers = false;   ///< some active session shows layers of models
  bool wants_ops = false;      ///< or operators around launches
  bool wants_lines = false;    ///< some active session shows the host by lines, in its scopes too
  bool wants_steps = false;    ///< some active session follows the steps of the program
};

namespace detail {
// Epoch in bits 63:32, generation in 31:8, flags in 7:0.
extern std::atomic<uint64_t> g_session_state;
inline constexpr uint64_t kActiveBit = 1, kPythonBit = 2, kTimesBit = 4, kTimelineBit = 8,
                          kLayersBit = 16, kOpsBit = 32, kLinesBit = 64, kStepsBit = 128;
inline constexpr uint32_t kGenerationMask = 0xffffff;
} // namespace detail

/// [any thread]
inline SessionState session_state() noexcept {
  uint64_t word = detail::g_session_state.load(std::memory_order_acquire);
  SessionState now;
  now.epoch = static_cast<EpochId>(word >> 32);
  now.generation = static_cast<uint32_t>(word >> 8) & detail::kGenerationMask;
  now.active = (word & detail::kActiveBit) != 0;
  now.wants_python = (word & detail::kPythonBit) != 0;
  now.wants_times = (word & detail::kTimesBit) != 0;
  now.wants_timeline = (word & detail::kTimelineBit) != 0;
  now.wants_layers = (word & detail::kLayersBit) != 0;
  now.wants_ops = (word & detail::kOpsBit) != 0;
  now.wants_lines = (word & detail::kLinesBit) != 0;
  now.wants_steps = (word & detail::kStepsBit) != 0;
  return now;
}
/// Opens a new epoch. [session lock held]
void publish_session_state(const SessionState &next) noexcept;

/// Where the calling thread stands; epoch 0 when no session is active. [launching thread]
///   may_wait: for Python's lock, which naming frames needs; else new frames are read without
Capture capture_current(bool may_wait = true) noexcept;

/// Source of Python call paths, set by the binding room: walks the calling thread's own frames.
using PythonSource = ContextId (*)(const SessionState &, bool may_wait) noexcept;
void set_python_source(PythonSource source) noexcept;

/// Has memory that is allocated at these contexts be recorded with the Python frames that allocate
/// it, where no session wants those; the first few of them. [aggregator's lock held]
void watch_lines_at(std::span<const ContextId> contexts) noexcept;
/// Where the calling thread allocates memory, whatever locks it holds. [any thread]
Capture capture_allocation() noexcept;

// Whether work is being captured into a graph: by the calling thread, for its metrics; by any
// thread, for code that would wait for a device.

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
