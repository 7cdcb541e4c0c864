// Operators that ended on another thread than the one where they began, which reads them here.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace proton {

/// A ring of the newest tokens. Takes no lock: it is used in callbacks, also of forked children.
class StrayEnds {
public:
  void post(const void *token) noexcept {
    uint64_t number = posted_.fetch_add(1, std::memory_order_acq_rel);
    Slot &slot = slots_[number % kSlots];
    slot.number.store(0, std::memory_order_release); // until the token is the new one
    slot.token.store(token, std::memory_order_release);
    slot.number.store(number + 1, std::memory_order_release);
  }

  /// True when something was posted since `seen`; one read, for the hot path.
  bool has_news(uint64_t seen) const noexcept {
    return posted_.load(std::memory_order_acquire) != seen;
  }

  /// Calls `visit(token)` for what was posted since `seen`, and advances `seen`. If more than a
  /// full ring was posted, only the newest are visited.
  template <typename Visit> void visit_since(uint64_t &seen, Visit &&visit) const noexcept {
    uint64_t end = posted_.load(std::memory_order_acquire);
    if (end - seen > kSlots)
      seen = end - kSlots;
    for (; seen < end; ++seen) {
      const Slot &slot = slots_[seen % kSlots];
      uint64_t number = slot.number.load(std::memory_order_acquire);
      if (number == 0 || number < seen + 1)
        return; // its thread is about to write it: next time
      const void *token = slot.token.load(std::memory_order_acquire);
      if (number == seen + 1 && slot.number.load(std::memory_order_acquire) == number)
        visit(token);
    }
  }

  /// For a thread that has nothing open yet.
  uint64_t posted() const noexcept { return posted_.load(std::memory_order_acquire); }

private:
  static constexpr uint64_t kSlots = 4096;
  struct Slot {
    std::atomic<uint64_t> number{0}; ///< position plus one; 0 while it is written
    std::atomic<const void *> token{nullptr};
  };
  std::atomic<uint64_t> posted_{0};
  std::array<Slot, kSlots> slots_{};
};

} // namespace proton
