#include "context/current.h"

#include "context/thread_state.h"

namespace proton {
namespace {

constexpr uint64_t kActiveBit = 1, kPythonBit = 2, kWallBit = 4;
constexpr uint32_t kBirthMask = 0xffffff;

// epoch in bits 63:32, birth in 31:8, flags in 7:0.
std::atomic<uint64_t> g_situation{0};
std::atomic<PythonSource> g_python_source{nullptr};

} // namespace

Situation situation() noexcept {
  uint64_t word = g_situation.load(std::memory_order_acquire);
  Situation now;
  now.epoch = static_cast<EpochId>(word >> 32);
  now.birth = static_cast<uint32_t>(word >> 8) & kBirthMask;
  now.active = (word & kActiveBit) != 0;
  now.wants_python = (word & kPythonBit) != 0;
  now.wants_wall = (word & kWallBit) != 0;
  return now;
}

void publish_situation(const Situation &next) noexcept {
  uint64_t word = (uint64_t{next.epoch} << 32) | (uint64_t{next.birth & kBirthMask} << 8) |
                  (next.active ? kActiveBit : 0) | (next.wants_python ? kPythonBit : 0) |
                  (next.wants_wall ? kWallBit : 0);
  g_situation.store(word, std::memory_order_seq_cst);
}

void set_python_source(PythonSource source) noexcept {
  g_python_source.store(source, std::memory_order_release);
}

Capture capture_current() noexcept {
  Capture capture;
  Situation now = situation();
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
