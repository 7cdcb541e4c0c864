#include "context/thread/current.h"

#include "context/thread/thread_state.h"

namespace proton {

std::atomic<uint64_t> detail::g_session_state{0};

namespace {

std::atomic<PythonSource> g_python_source{nullptr};

} // namespace

void publish_session_state(const SessionState &next) noexcept {
  using namespace detail;
  uint64_t word = (uint64_t{next.epoch} << 32) |
                  (uint64_t{next.generation & kGenerationMask} << 8) |
                  (next.active ? kActiveBit : 0) | (next.wants_python ? kPythonBit : 0) |
                  (next.wants_times ? kTimesBit : 0) | (next.wants_timeline ? kTimelineBit : 0) |
                  (next.wants_layers ? kLayersBit : 0) | (next.wants_ops ? kOpsBit : 0) |
                  (next.wants_lines ? kLinesBit : 0);
  g_session_state.store(word, std::memory_order_seq_cst);
}

void set_python_source(PythonSource source) noexcept {
  g_python_source.store(source, std::memory_order_release);
}

Capture capture_current() noexcept {
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
    capture.python = source(now);
  capture.epoch = now.epoch;
  return capture;
}

} // namespace proton
