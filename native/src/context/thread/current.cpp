#include "context/thread/current.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <ctime>

#include "context/python/python_lock.h"
#include "context/thread/thread_state.h"
#include "support/clock.h"

namespace proton {

std::atomic<uint64_t> detail::g_session_state{0};

namespace {

std::atomic<PythonSource> g_python_source{nullptr};
constexpr ContextId kNotWatched = 0xffffffffu;

} // namespace

void publish_session_state(const SessionState &next) noexcept {
  using namespace detail;
  uint64_t word = (uint64_t{next.epoch} << 32) |
                  (uint64_t{next.generation & kGenerationMask} << 8) |
                  (next.active ? kActiveBit : 0) | (next.wants_python ? kPythonBit : 0) |
                  (next.wants_times ? kTimesBit : 0) | (next.wants_timeline ? kTimelineBit : 0) |
                  (next.wants_layers ? kLayersBit : 0) | (next.wants_ops ? kOpsBit : 0) |
                  (next.wants_lines ? kLinesBit : 0) | (next.wants_steps ? kStepsBit : 0);
  g_session_state.store(word, std::memory_order_seq_cst);
}

void set_python_source(PythonSource source) noexcept {
  g_python_source.store(source, std::memory_order_release);
}

Capture capture_current(bool may_wait) noexcept {
  Capture capture;
  SessionState now = session_state();
  if (!now.active)
    return capture;
  try {
    capture.shadow = this_thread().stack.current(now);
  } catch (...) { // out of memory or too many paths: the record stands at the root
    capture.shadow = 0;
  }
  PythonSource source =
      now.wants_python ? g_python_source.load(std::memory_order_acquire) : nullptr;
  if (source)
    capture.python = source(now, may_wait);
  capture.epoch = now.epoch;
  return capture;
}

namespace {

constexpr size_t kMostWatched = 8;
std::array<std::atomic<ContextId>, kMostWatched> g_watched{};
std::atomic<bool> g_watches{false};

bool is_watched(ContextId context) noexcept {
  return g_watches.load(std::memory_order_relaxed) && context != kNotWatched &&
         std::any_of(g_watched.begin(), g_watched.end(), [&](const auto &each) {
           return each.load(std::memory_order_relaxed) == context;
         });
}

} // namespace

void watch_lines_at(std::span<const ContextId> contexts) noexcept {
  for (size_t i = 0; i < kMostWatched; ++i)
    g_watched[i].store(i < contexts.size() ? contexts[i] : kNotWatched, std::memory_order_relaxed);
  g_watches.store(!contexts.empty(), std::memory_order_relaxed);
}

Capture capture_allocation() noexcept {
  Capture capture = capture_current(/*may_wait=*/false);
  if (capture.epoch == 0 || capture.python != 0 || !is_watched(capture.shadow)) [[likely]]
    return capture;
  if (PythonSource source = g_python_source.load(std::memory_order_acquire))
    capture.python = source(session_state(), /*may_wait=*/false);
  return capture;
}

namespace {

[[gnu::tls_model("initial-exec")]] thread_local OpenCapture *t_capture = nullptr;

// Counts open captures and threads that wait for devices, which exclude each other.
constexpr uint64_t kOneCapture = 1;
constexpr uint64_t kOneWait = uint64_t{1} << 32;
std::atomic<uint64_t> g_state{0};

uint64_t captures_of(uint64_t state) { return state % kOneWait; }
uint64_t waits_of(uint64_t state) { return state / kOneWait; }

// A device that never ends its work must not keep the target from capturing for ever.
constexpr int64_t kLongestWaitNs = 30'000'000'000;
constexpr timespec kBetweenLooks{0, 50'000};

} // namespace

OpenCapture *open_capture() noexcept { return t_capture; }
void set_open_capture(OpenCapture *capture) noexcept { t_capture = capture; }

void capture_begins() noexcept {
  uint64_t state = g_state.load();
  if (waits_of(state) == 0 && g_state.compare_exchange_strong(state, state + kOneCapture))
    return;
  WithoutPythonLock unlocked; // a thread that waits for the device may need it
  const int64_t end_ns = monotonic_ns() + kLongestWaitNs;
  while (true) {
    state = g_state.load();
    bool may_begin = waits_of(state) == 0 || monotonic_ns() >= end_ns;
    if (may_begin && g_state.compare_exchange_weak(state, state + kOneCapture))
      return;
    if (!may_begin)
      nanosleep(&kBetweenLooks, nullptr);
  }
}

void capture_found() noexcept { g_state.fetch_add(kOneCapture); }

void captures_ended(size_t count) noexcept { g_state.fetch_sub(count * kOneCapture); }

bool any_capture_open() noexcept { return captures_of(g_state.load()) != 0; }

void forget_captures_after_fork() noexcept { g_state.store(0); }

DeviceWait::DeviceWait() noexcept : is_allowed_(false) {
  uint64_t state = g_state.load();
  while (captures_of(state) == 0 && !is_allowed_)
    is_allowed_ = g_state.compare_exchange_weak(state, state + kOneWait);
}

DeviceWait::~DeviceWait() {
  if (is_allowed_)
    g_state.fetch_sub(kOneWait);
}

} // namespace proton
