// A native thread that acts where Python cannot: on a signal while the main thread sits in C, and
// every few seconds for the case that the process is killed.
//
// SIGTERM, SIGHUP: where the process has a handler of its own, the files are written (marked
// partial) and then that handler decides; without one they are written and the process ends.
// SIGINT: Python's handler runs at once, as ever. Where the main thread does not take it within
// two seconds the files are written; a second SIGINT then ends the process, unless the handler is
// the target's own. At the end of a recording SIGINT waits until the files are written.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "session/output_guard.h"

namespace proton {

/// How the process ends after a signal that it does not handle.
enum class Ending : uint8_t {
  kExitCode, ///< exit code 128 + signal, as a shell would say it
  kSignal,   ///< by the signal itself, as its parent would see it without us
};

struct WatchOptions {
  int64_t interval_ns = 0; ///< between two partial files; 0: none are written
  Ending ending = Ending::kExitCode;
};

/// What only the interpreter's side can do; every function may be called on any thread.
struct HostActions {
  /// Flushes the streams of Python and C and keeps Python's lock, so that the target runs no
  /// further. May never return.
  void (*flush_and_freeze)() = nullptr;
  /// Has the main thread set the flag as soon as it runs Python code again.
  void (*ask_main_thread)(std::atomic<bool> *flag) = nullptr;
};
void set_host_actions(const HostActions &actions) noexcept;

/// Says on stderr what was written and what went wrong; only the latter where `is_quiet`.
void say_report(const WriteReport &report, const std::string &why, bool is_quiet = false);

/// Starts the thread; does nothing while it runs. Throws Error(kUnavailable).
void start_watch(const WatchOptions &options);
/// Ends the thread and restores the process's own signal handlers.
void stop_watch();
bool is_watching() noexcept;
/// Whether the target left SIGINT to Python's own handler, which raises KeyboardInterrupt.
void set_interrupt_is_default(bool is_default) noexcept;
/// Whether files are being written and Python holds SIGINT back meanwhile: the third SIGINT then
/// ends the process without them. Those within half a second count as one.
void set_ending(bool is_ending) noexcept;
/// In a forked child: there is no thread, and the handlers are the process's own again.
void reset_watch_after_fork() noexcept;

} // namespace proton
