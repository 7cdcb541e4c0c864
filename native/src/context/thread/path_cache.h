// The paths that a thread took before: a child's id by its parent and name, without a lock.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "context/thread/current.h"
#include "record/record.h"

namespace proton {

/// A name with the hash its owner has at hand (Python strings cache theirs).
struct HashedName {
  std::string_view text;
  uint64_t hash = 0;
};

/// A child as its parent's thread asks for it.
struct PathStep {
  ContextId parent = 0;
  HashedName name;
  FrameKind kind = FrameKind::kUnknown;
  uint32_t generation = 0;
  uint32_t collection = 0; ///< of the context tree: ids are valid for this number only
};

/// Owned by one thread. Programs repeat themselves, and the work in between empties the processor's
/// caches, so entries lie in the order of their first use, and each knows which was used after it.
class PathCache {
public:
  static constexpr size_t kLongestName = 88; ///< autograd's names are long

  /// The id; kNone if the step has to be looked up.
  ContextId find(const PathStep &step) noexcept {
    Entry &guess = entries_[entries_[last_].next];
    if (matches(guess, step)) [[likely]]
      return use(guess);
    for (uint32_t probe = 0; probe < kProbes; ++probe) {
      uint16_t place = index_[slot(step, probe)];
      if (place != 0 && matches(entries_[place], step))
        return use(entries_[place]);
    }
    return kNone;
  }

  /// Keeps what a lookup found; a name longer than kLongestName is not kept.
  void keep(const PathStep &step, ContextId id) noexcept;

  /// A guess at what is found next: any id, which may be gone.
  ContextId expected() const noexcept { return entries_[entries_[last_].next].id; }

  static constexpr ContextId kNone = 0; ///< the root, which is not a child

private:
  static constexpr size_t kLine = 64;
  static constexpr uint32_t kEntries = 1024; // a training step has hundreds of paths
  static constexpr uint32_t kSlots = 2048;
  static constexpr uint32_t kProbes = 4;

  struct alignas(kLine) Entry {
    uint64_t hash = 0;
    ContextId parent = 0;
    ContextId id = 0;
    uint32_t generation = 0;
    uint32_t collection = 1; ///< odd: no settled number
    FrameKind kind = FrameKind::kUnknown;
    uint8_t length = 0;
    uint16_t next = 0;                   ///< entry that was used after this one the last time
    std::array<char, kLongestName> text; ///< own copy: the node may be freed while we compare
  };

  static bool matches(const Entry &entry, const PathStep &step) noexcept {
    const std::string_view text = step.name.text;
    return entry.hash == step.name.hash && entry.parent == step.parent &&
           entry.collection == step.collection && entry.generation == step.generation &&
           entry.kind == step.kind && entry.length == text.size() &&
           std::memcmp(entry.text.data(), text.data(), text.size()) == 0;
  }
  static uint32_t slot(const PathStep &step, uint32_t probe) noexcept {
    uint64_t mixed = step.name.hash ^ (uint64_t{step.parent} * 0x9E3779B97F4A7C15ull) ^
                     static_cast<uint64_t>(step.kind);
    return static_cast<uint32_t>((mixed >> 7) + probe) % kSlots;
  }
  ContextId use(Entry &entry) noexcept {
    auto place = static_cast<uint16_t>(&entry - entries_.data());
    entries_[last_].next = place;
    last_ = place;
    // The entry after the next: the next one was prefetched a step ago.
    const auto *upcoming = reinterpret_cast<const char *>(&entries_[entries_[entry.next].next]);
    __builtin_prefetch(upcoming);
    __builtin_prefetch(upcoming + kLine);
    return entry.id;
  }

  uint16_t last_ = 0;
  uint16_t used_ = 1; ///< entry 0 matches nothing
  std::array<uint16_t, kSlots> index_{};
  std::array<Entry, kEntries> entries_{};
};

} // namespace proton
