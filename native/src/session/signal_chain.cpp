#include "session/signal_chain.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>

#include "support/file_identity.h"

namespace proton {
namespace {

using Action = struct sigaction;

constexpr std::array<int, 3> kSignals{SIGTERM, SIGHUP, SIGINT};
constexpr int kWaitStep_ms = 1;
constexpr int kHandlerSteps = 2000;
constexpr int kEndSteps = 10'000;

/// What stands behind our handler. An entry is never changed or freed once a handler may see it;
/// a process that switches between a few handlers reuses their entries.
struct Link {
  Action action{};
  Link *next = nullptr;
};
struct Chain {
  Link *known = nullptr;                     ///< by one thread at a time
  std::atomic<const Link *> behind{nullptr}; ///< null: our handler is not installed
};

std::array<Chain, kSignals.size()> g_chains;
std::atomic<int> g_descriptor{-1};
FileIdentity g_pipe; ///< of the descriptor
std::atomic<pid_t> g_process{0};
std::atomic<uint32_t> g_asked{0};
std::atomic<uint32_t> g_answered{0};
std::atomic_flag g_changing = ATOMIC_FLAG_INIT;

static_assert(std::atomic<const Link *>::is_always_lock_free);

Chain *chain_of(int number) noexcept {
  for (size_t i = 0; i < kSignals.size(); ++i)
    if (kSignals[i] == number)
      return &g_chains[i];
  return nullptr;
}

bool is_function(const Action &action) noexcept {
  // SIG_DFL and SIG_IGN are never functions, whatever the flags say.
  return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

void wait_for_answer(uint32_t ticket, int steps) noexcept {
  for (int i = 0; i < steps; ++i) {
    if (static_cast<int32_t>(g_answered.load(std::memory_order_acquire) - ticket) > 0)
      return;
    poll(nullptr, 0, kWaitStep_ms); // async-signal-safe, unlike every condition variable
  }
}

void pass_on(const Action &action, int number, siginfo_t *facts, void *context) noexcept {
  if ((action.sa_flags & SA_SIGINFO) != 0)
    action.sa_sigaction(number, facts, context);
  else
    action.sa_handler(number);
}

void on_signal(int number, siginfo_t *facts, void *context) noexcept {
  int saved_errno = errno;
  const Chain *chain = chain_of(number);
  const Link *behind = chain ? chain->behind.load(std::memory_order_acquire) : nullptr;
  // A child that was made without fork's handlers shares the pipe, but is not watched.
  bool is_ours = getpid() == g_process.load(std::memory_order_relaxed);
  bool is_handled = behind && is_function(behind->action);
  if (is_ours) {
    uint32_t ticket = g_asked.fetch_add(1, std::memory_order_acq_rel);
    auto byte = static_cast<unsigned char>(number);
    int descriptor = g_descriptor.load(std::memory_order_relaxed);
    bool is_pipe = g_pipe.is_of(descriptor);
    bool is_sent = is_pipe && write(descriptor, &byte, 1) == 1;
    if (!is_sent)
      signal_answered();           // no thread will: keep the count right
    if (!is_pipe && !is_handled) { // the program closed it: what it would be without us
      signal(number, SIG_DFL);
      raise(number);
    }
    if (is_sent && is_handled && number != SIGINT)
      wait_for_answer(ticket, kHandlerSteps);
  } else if (!is_handled) {
    signal(number, SIG_DFL);
    raise(number); // delivered when this handler returns
  }
  errno = saved_errno;
  if (is_handled)
    pass_on(behind->action, number, facts, context);
}

bool is_ours(const Action &action) noexcept {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_signal;
}

bool same(const Action &a, const Action &b) noexcept {
  return a.sa_handler == b.sa_handler && a.sa_flags == b.sa_flags &&
         std::memcmp(&a.sa_mask, &b.sa_mask, sizeof a.sa_mask) == 0;
}

const Link *remember(Chain &chain, const Action &action) noexcept {
  for (const Link *link = chain.known; link; link = link->next)
    if (same(link->action, action))
      return link;
  Link *link = new (std::nothrow) Link{action, chain.known};
  if (link)
    chain.known = link;
  return link;
}

void put_in_front(Chain &chain, int number) noexcept {
  Action now{};
  if (sigaction(number, nullptr, &now) != 0 || is_ours(now))
    return;
  const Link *behind = now.sa_handler == SIG_IGN ? nullptr : remember(chain, now);
  chain.behind.store(behind, std::memory_order_release);
  if (!behind)
    return;
  Action ours{};
  ours.sa_sigaction = on_signal;
  ours.sa_mask = now.sa_mask;
  // Interrupted calls go on, or do not, as the process's own handler asked.
  int kept = is_function(now) ? now.sa_flags & (SA_RESTART | SA_NODEFER) : SA_RESTART;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | kept;
  sigaction(number, &ours, nullptr);
}

// A lock of one instruction: the watching thread and a Python thread may both renew.
class Changing {
public:
  Changing() noexcept {
    while (g_changing.test_and_set(std::memory_order_acquire))
      poll(nullptr, 0, kWaitStep_ms);
  }
  ~Changing() { g_changing.clear(std::memory_order_release); }
  Changing(const Changing &) = delete;
  Changing &operator=(const Changing &) = delete;
};

} // namespace

std::span<const int> watched_signals() noexcept { return kSignals; }

const char *signal_name(int number) noexcept {
  switch (number) {
  case SIGTERM:
    return "SIGTERM";
  case SIGHUP:
    return "SIGHUP";
  case SIGINT:
    return "SIGINT";
  default:
    return "a signal";
  }
}

void install_signal_chain(int descriptor) noexcept {
  g_process.store(getpid(), std::memory_order_relaxed);
  g_answered.store(g_asked.load());
  g_pipe = FileIdentity::of(descriptor);
  g_descriptor.store(descriptor, std::memory_order_release);
  renew_signal_chain();
}

void renew_signal_chain() noexcept {
  if (g_descriptor.load(std::memory_order_acquire) < 0)
    return;
  Changing one_at_a_time;
  for (size_t i = 0; i < kSignals.size(); ++i)
    put_in_front(g_chains[i], kSignals[i]);
}

void remove_signal_chain() noexcept {
  if (getpid() != g_process.load(std::memory_order_relaxed))
    g_changing.clear(std::memory_order_release); // its holder does not exist here
  Changing one_at_a_time;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    const Link *behind = g_chains[i].behind.load(std::memory_order_acquire);
    Action now{};
    if (behind && sigaction(kSignals[i], nullptr, &now) == 0 && is_ours(now))
      sigaction(kSignals[i], &behind->action, nullptr);
    g_chains[i].behind.store(nullptr, std::memory_order_release);
  }
  g_descriptor.store(-1, std::memory_order_release);
  g_answered.store(g_asked.load()); // the rest gets no answer
}

bool is_handled_by_process(int number) noexcept {
  const Chain *chain = chain_of(number);
  const Link *behind = chain ? chain->behind.load(std::memory_order_acquire) : nullptr;
  return behind && is_function(behind->action);
}

void signal_answered() noexcept { g_answered.fetch_add(1, std::memory_order_acq_rel); }

void wait_for_answers() noexcept {
  wait_for_answer(g_asked.load(std::memory_order_acquire) - 1, kEndSteps);
}

} // namespace proton
