#include "session/watch_thread.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>

#include "session/output_guard.h"
#include "session/signal_chain.h"
#include "session/stderr_line.h"
#include "support/clock.h"
#include "support/error.h"
#include "support/file_identity.h"

namespace proton {
namespace {

constexpr int64_t kMillisecond_ns = 1'000'000;
constexpr int64_t kFlushPatience_ns = 1'000 * kMillisecond_ns;
constexpr int64_t kInterruptPatience_ns = 2'000 * kMillisecond_ns;
/// A second Ctrl-C that comes sooner counts as the same one.
constexpr int64_t kSecondInterrupt_ns = 500 * kMillisecond_ns;
/// So many SIGINTs end the process while its files are written.
constexpr int kImpatient = 3;
constexpr int kExitBase = 128;
/// Partial files take at most one part in so many of the time of one processor.
constexpr int64_t kPartialShare = 20;
constexpr char kStop = 0; // no signal has this number
/// How often to look whether to stop, once the program has closed our pipe.
constexpr int kWithoutPipe_ms = 100;

struct Watch {
  WatchOptions options;
  pthread_t thread{};
  int read_end = -1;
  int write_end = -1;
  FileIdentity pipe; ///< of both ends
  bool has_told_error = false;
};

/// A SIGINT that the main thread may not have noticed.
struct Interrupt {
  bool is_open = false;
  bool is_written = false;
  int64_t since_ns = 0;
  int at_end = 0; ///< that came while files were written
};

Watch g_watch;
std::atomic<bool> g_is_watching{false};
std::atomic<bool> g_is_stopping{false};
std::atomic<bool> g_interrupt_is_default{true};
std::atomic<bool> g_interrupt_taken{false};
std::atomic<bool> g_flushed{false};
std::atomic<bool> g_is_ending{false};
HostActions g_host;

int64_t thread_cpu_ns() noexcept {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<int64_t>(used.tv_sec) * 1'000'000'000 + used.tv_nsec;
}

template <typename Body> bool start_thread(pthread_t &thread, Body body, void *argument) {
  // The new thread inherits the mask: no handler ever runs on one of ours.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int code = pthread_create(&thread, nullptr, body, argument);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return code == 0;
}

// Not noexcept and without a catch: an interpreter that shuts down may end this thread by a forced
// unwinding.
void *flush(void *) {
  g_host.flush_and_freeze();
  g_flushed.store(true, std::memory_order_release);
  for (;;)
    pause();
}

void flush_streams() {
  pthread_t thread{};
  if (!g_host.flush_and_freeze || !start_thread(thread, flush, nullptr))
    return;
  pthread_detach(thread);
}

void wait_for_flush(int64_t deadline_ns) {
  constexpr timespec kPause{0, kMillisecond_ns};
  while (!g_flushed.load(std::memory_order_acquire) && monotonic_ns() < deadline_ns)
    nanosleep(&kPause, nullptr);
}

[[noreturn]] void end_process(int number) {
  if (g_watch.options.ending == Ending::kSignal) {
    struct sigaction usual{};
    usual.sa_handler = SIG_DFL;
    sigaction(number, &usual, nullptr);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
    raise(number);
  }
  _exit(kExitBase + number);
}

[[noreturn]] void leave(int number) {
  OutputGuard &guard = OutputGuard::instance();
  guard.wait_for_python(); // it needs its lock to finish
  int64_t deadline_ns = monotonic_ns() + kFlushPatience_ns;
  flush_streams();
  try {
    say_report(guard.write_all(signal_name(number), false), signal_name(number));
  } catch (...) { // no memory for the report
  }
  if (g_host.flush_and_freeze)
    wait_for_flush(deadline_ns);
  end_process(number);
}

void write_and_go_on(int number) {
  WriteReport report = OutputGuard::instance().write_all(signal_name(number), true);
  for (const std::string &error : report.errors)
    say(std::string(signal_name(number)) + ": error: " + error);
}

void on_interrupt_at_end(Interrupt &interrupt) {
  int64_t now_ns = monotonic_ns();
  if (interrupt.at_end != 0 && now_ns - interrupt.since_ns < kSecondInterrupt_ns)
    return;
  interrupt = {false, false, now_ns, interrupt.at_end + 1};
  if (interrupt.at_end == 1)
    say("SIGINT: the process ends once its profile is written; two more end it without");
  if (interrupt.at_end < kImpatient)
    return;
  say("SIGINT: ended before the profile was written; partial files may be read");
  end_process(SIGINT);
}

void on_interrupt(Interrupt &interrupt) {
  if (!is_handled_by_process(SIGINT))
    leave(SIGINT);
  if (g_is_ending.load(std::memory_order_acquire))
    return on_interrupt_at_end(interrupt);
  int64_t now_ns = monotonic_ns();
  bool is_open = interrupt.is_open && !g_interrupt_taken.load(std::memory_order_acquire);
  if (is_open) {
    bool is_default = g_interrupt_is_default.load(std::memory_order_relaxed);
    if (is_default && now_ns - interrupt.since_ns >= kSecondInterrupt_ns)
      leave(SIGINT);
    return;
  }
  interrupt = {true, false, now_ns, 0};
  g_interrupt_taken.store(false, std::memory_order_release);
  if (g_host.ask_main_thread)
    g_host.ask_main_thread(&g_interrupt_taken);
}

void look_after(Interrupt &interrupt) {
  if (!interrupt.is_open || interrupt.is_written)
    return;
  if (g_is_ending.load(std::memory_order_acquire)) // Python holds it back
    interrupt.is_open = false;
  else if (g_interrupt_taken.load(std::memory_order_acquire)) {
    interrupt.is_open = false;
  } else if (monotonic_ns() - interrupt.since_ns >= kInterruptPatience_ns) {
    interrupt.is_written = true;
    write_and_go_on(SIGINT);
    say("SIGINT: the main thread does not respond; the profile so far is written" +
        std::string(g_interrupt_is_default ? ", and another SIGINT ends the process" : ""));
  }
}

void on_byte(char byte, Interrupt &interrupt) {
  int number = byte;
  if (number == SIGINT)
    on_interrupt(interrupt);
  else if (is_handled_by_process(number))
    write_and_go_on(number);
  else
    leave(number);
  signal_answered();
}

// Returns when to write the next ones: so late that they take a small part of one processor.
int64_t write_partials() {
  renew_signal_chain(); // C code may have installed a handler unnoticed
  int64_t begin_ns = thread_cpu_ns();
  WriteReport report = OutputGuard::instance().write_partials();
  if (!report.errors.empty() && !std::exchange(g_watch.has_told_error, true))
    say("warning: " + report.errors.front());
  int64_t cost_ns = thread_cpu_ns() - begin_ns;
  return monotonic_ns() + std::max(g_watch.options.interval_ns, cost_ns * kPartialShare);
}

int timeout_ms(int64_t due_ns, const Interrupt &interrupt) {
  int64_t next_ns = due_ns;
  if (interrupt.is_open && !interrupt.is_written)
    next_ns = std::min(next_ns, interrupt.since_ns + kInterruptPatience_ns);
  if (next_ns == INT64_MAX)
    return -1;
  int64_t wait_ms = (next_ns - monotonic_ns()) / kMillisecond_ns + 1;
  return static_cast<int>(std::clamp<int64_t>(wait_ms, 0, 3'600'000));
}

// Returns false when the thread is to end.
bool serve(int64_t &due_ns, Interrupt &interrupt) {
  int wait_ms = timeout_ms(due_ns, interrupt);
  std::array<char, 16> bytes{};
  ssize_t count = 0;
  if (g_watch.pipe.is_of(g_watch.read_end)) {
    pollfd ready{g_watch.read_end, POLLIN, 0};
    poll(&ready, 1, wait_ms);
    if (g_watch.pipe.is_of(g_watch.read_end)) // else what is there to read is the program's
      count = read(g_watch.read_end, bytes.data(), bytes.size());
  } else if (g_is_stopping.load(std::memory_order_acquire)) {
    return false;
  } else {
    poll(nullptr, 0, wait_ms < 0 ? kWithoutPipe_ms : std::min(wait_ms, kWithoutPipe_ms));
  }
  for (ssize_t i = 0; i < count; ++i) {
    if (bytes[static_cast<size_t>(i)] == kStop)
      return false;
    on_byte(bytes[static_cast<size_t>(i)], interrupt);
  }
  look_after(interrupt);
  if (monotonic_ns() >= due_ns)
    due_ns = write_partials();
  return true;
}

void *run(void *) noexcept {
  pthread_setname_np(pthread_self(), "proton-watch");
  int64_t interval_ns = g_watch.options.interval_ns;
  int64_t due_ns = interval_ns > 0 ? monotonic_ns() + interval_ns : INT64_MAX;
  Interrupt interrupt;
  for (;;) {
    try {
      if (!serve(due_ns, interrupt))
        return nullptr;
    } catch (...) { // no memory: the next signal or interval tries again
    }
  }
}

void close_pipe() noexcept {
  for (int end : {g_watch.read_end, g_watch.write_end})
    if (g_watch.pipe.is_of(end))
      close(end);
}

[[noreturn]] void fail(const char *what, int code) {
  throw Error(ErrorCode::kUnavailable, std::string("cannot watch for signals: ") + what + ": " +
                                           std::strerror(code) +
                                           "; set PROTON_BENCH_SIGNALS=0 to do without");
}

} // namespace

void say_report(const WriteReport &report, const std::string &why, bool is_quiet) {
  std::string names;
  for (const std::string &file : report.files)
    if (file != "-")
      names += (names.empty() ? "" : ", ") + file.substr(file.rfind('/') + 1);
  for (const std::string &error : report.errors)
    say(why + ": error: " + error);
  if (!names.empty() && !is_quiet)
    say(why + ": wrote " + names);
}

void set_host_actions(const HostActions &actions) noexcept { g_host = actions; }

void start_watch(const WatchOptions &options) {
  if (g_is_watching.load(std::memory_order_acquire))
    return;
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0)
    fail("no pipe", errno);
  g_watch = Watch{options, {}, ends[0], ends[1], FileIdentity::of(ends[0]), false};
  g_is_stopping.store(false, std::memory_order_release);
  if (!start_thread(g_watch.thread, run, nullptr)) {
    close_pipe();
    fail("no thread", EAGAIN);
  }
  g_is_watching.store(true, std::memory_order_release);
  install_signal_chain(g_watch.write_end);
}

void stop_watch() {
  if (!g_is_watching.exchange(false))
    return;
  // The thread still answers earlier signals; signals until our handlers are gone are sent again.
  g_is_stopping.store(true, std::memory_order_release);
  while (g_watch.pipe.is_of(g_watch.write_end) &&
         write(g_watch.write_end, &kStop, 1) != 1) // full: the thread is about to read
    poll(nullptr, 0, 1);
  pthread_join(g_watch.thread, nullptr);
  std::array<bool, NSIG> handled{};
  for (int number : watched_signals())
    handled[static_cast<size_t>(number)] = is_handled_by_process(number);
  remove_signal_chain();
  bool is_open = g_watch.pipe.is_of(g_watch.read_end);
  for (char byte = 0; is_open && read(g_watch.read_end, &byte, 1) == 1;)
    if (byte != kStop && !handled[static_cast<size_t>(byte)])
      kill(getpid(), byte);
  close_pipe();
}

void set_ending(bool is_ending) noexcept {
  g_is_ending.store(is_ending, std::memory_order_release);
}

bool is_watching() noexcept { return g_is_watching.load(std::memory_order_acquire); }

void set_interrupt_is_default(bool is_default) noexcept {
  g_interrupt_is_default.store(is_default, std::memory_order_relaxed);
}

void reset_watch_after_fork() noexcept {
  if (!g_is_watching.exchange(false))
    return;
  remove_signal_chain();
  close_pipe(); // shared with the parent, whose thread must not get our signals
}

} // namespace proton
