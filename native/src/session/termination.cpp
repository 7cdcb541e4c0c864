#include "session/termination.h"

#include <semaphore.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <exception>
#include <thread>

#include "session/partial_writer.h"
#include "support/clock.h"

namespace proton {
namespace {

constexpr int64_t kFinalPatience_ns = 5'000'000'000;
constexpr timespec kBetweenTries{0, 5'000'000};
constexpr int kMostTries = 1000;

sem_t g_asked; ///< never destroyed: the handler may use it to the end
volatile sig_atomic_t g_process = 0;
std::atomic<bool> g_is_written{false};

void end_by_default() noexcept {
  struct sigaction by_default{};
  by_default.sa_handler = SIG_DFL;
  sigaction(SIGTERM, &by_default, nullptr);
  kill(getpid(), SIGTERM);
}

/// Only calls what a handler of signals may call.
void on_termination(int) noexcept {
  if (getpid() != g_process) { // forked: the thread is the parent's
    end_by_default();
    return;
  }
  sem_post(&g_asked);
  // The program goes no further, unless it is writing its files at its end. The thread that writes
  // may wait for something that this one holds: then the process ends without.
  for (int i = 0; i < kMostTries && !g_is_written && !PartialWriter::instance().is_any_finalizing();
       ++i)
    nanosleep(&kBetweenTries, nullptr);
  if (!PartialWriter::instance().is_any_finalizing())
    end_by_default();
}

void wait_and_write() noexcept {
  while (sem_wait(&g_asked) != 0) {
  }
  try {
    PartialWriter::instance().write();
  } catch (const std::exception &) { // no memory: what was written before stays
  }
  g_is_written = true;
  // Pools also ask their workers to end by themselves, just before.
  const int64_t deadline_ns = monotonic_ns() + kFinalPatience_ns;
  while (PartialWriter::instance().is_any_finalizing() && monotonic_ns() < deadline_ns)
    nanosleep(&kBetweenTries, nullptr);
  end_by_default();
}

/// Starts the thread, which handles no signals.
bool start_thread() noexcept {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool is_started = true;
  try {
    std::thread(wait_and_write).detach();
  } catch (const std::exception &) { // the system gives none
    is_started = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return is_started;
}

} // namespace

bool write_when_terminated() noexcept {
  struct sigaction now{};
  if (sigaction(SIGTERM, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0 ||
      now.sa_handler != SIG_DFL)
    return false;
  if (sem_init(&g_asked, 0, 0) != 0 || !start_thread())
    return false;
  g_process = getpid();
  struct sigaction ours{};
  ours.sa_handler = on_termination;
  ours.sa_flags = SA_RESTART;
  sigfillset(&ours.sa_mask);
  return sigaction(SIGTERM, &ours, nullptr) == 0;
}

} // namespace proton
