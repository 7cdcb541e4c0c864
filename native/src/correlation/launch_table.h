// Joins device records with the launches they came from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "record/record.h"

namespace proton {

// Records by correlation id.

/// `Record` has a `correlation_id`, which is not 0. Not synchronised: the aggregator's lock guards
/// it.
///
/// Open addressing with linear probing: a launch lives for microseconds and there are hundreds of
/// thousands a second, so nothing is allocated per launch. Consecutive ids lie side by side in
/// groups, because records come in about the order of their launches. If a place is taken, the same
/// place of the next group is tried: neighbours do not make a search longer.
template <typename Record> class IdTable {
public:
  /// Returns the older record of the same id; empty if there is none.
  std::optional<Record> add(const Record &record) {
    if (2 * (used_ + 1) > slots_.size())
      resize(slots_.empty() ? kFirstSlots : 2 * slots_.size());
    size_t place = place_of(record.correlation_id);
    // One place of all groups may be taken while the table is nearly empty.
    while (slots_[place].correlation_id != record.correlation_id &&
           slots_[place].correlation_id != 0) {
      resize(2 * slots_.size());
      place = place_of(record.correlation_id);
    }
    Record &slot = slots_[place];
    if (slot.correlation_id != 0)
      return std::exchange(slot, record);
    slot = record;
    ++used_;
    return std::nullopt;
  }

  /// Null when the id is unknown; valid until the next change.
  Record *find(uint64_t correlation_id) {
    if (used_ == 0 || correlation_id == 0)
      return nullptr;
    Record &slot = slots_[place_of(correlation_id)];
    return slot.correlation_id == correlation_id ? &slot : nullptr;
  }

  /// Removes and returns the record; empty when it is unknown.
  std::optional<Record> take(uint64_t correlation_id) {
    const Record *found = find(correlation_id);
    if (!found)
      return std::nullopt;
    Record taken = *found;
    remove(static_cast<size_t>(found - slots_.data()));
    return taken;
  }

  /// Removes every record for which `is_over` is true, in any order.
  template <typename Predicate> size_t remove_if(Predicate &&is_over) {
    std::vector<uint64_t> over;
    for (const Record &record : slots_)
      if (record.correlation_id != 0 && is_over(record))
        over.push_back(record.correlation_id);
    for (uint64_t id : over)
      take(id);
    return over.size();
  }
  template <typename Visit> void for_each(Visit &&visit) const {
    for (const Record &record : slots_)
      if (record.correlation_id != 0)
        visit(record);
  }
  size_t size() const { return used_; }

private:
  static constexpr size_t kFirstSlots = 1024;
  static constexpr uint64_t kGroupBits = 6;
  static constexpr size_t kGroup = size_t{1} << kGroupBits;

  size_t home(uint64_t id) const {
    // Groups of 64 ids spread by a multiplication, so that two sources that count from different
    // starts do not pile up on each other.
    uint64_t group = (id >> kGroupBits) * 0x9E3779B97F4A7C15ull;
    // Bits of the same product rotate an id within its group, for ids a group apart.
    uint64_t slot = ((group >> 24) << kGroupBits) | ((id + (group >> 18)) & (kGroup - 1));
    return static_cast<size_t>(slot) & (slots_.size() - 1);
  }
  size_t next(size_t slot) const { return (slot + kGroup) & (slots_.size() - 1); }

  /// Slot of the id, or the free slot where it belongs; a slot of another id if none is free.
  size_t place_of(uint64_t id) const {
    size_t slot = home(id);
    for (size_t tries = slots_.size() >> kGroupBits; tries != 0; --tries) {
      if (slots_[slot].correlation_id == id || slots_[slot].correlation_id == 0)
        break;
      slot = next(slot);
    }
    return slot;
  }

  void remove(size_t hole) {
    slots_[hole].correlation_id = 0;
    --used_;
    // Records that this one displaced move back, so that a search never has to step over a gap.
    const size_t mask = slots_.size() - 1;
    for (size_t slot = next(hole); slots_[slot].correlation_id != 0; slot = next(slot)) {
      size_t wanted = home(slots_[slot].correlation_id);
      bool may_move = ((slot - wanted) & mask) >= ((slot - hole) & mask);
      if (!may_move)
        continue;
      slots_[hole] = slots_[slot];
      slots_[slot].correlation_id = 0;
      hole = slot;
    }
  }

  void resize(size_t slots) {
    std::vector<Record> old = std::exchange(slots_, std::vector<Record>(slots));
    used_ = 0;
    for (const Record &record : old)
      if (record.correlation_id != 0)
        add(record);
  }

  std::vector<Record> slots_; ///< a power of two of them, more than a group; id 0: free
  size_t used_ = 0;
};

// Calls that launch, for timelines.

/// What a timeline needs of a launch besides its record. It exists until the launch is over, for
/// launches that a session with a timeline sees.
struct LaunchCall {
  uint64_t correlation_id = 0; ///< not 0
  uint64_t number = 0;         ///< of the launch, from 1; never used again
  int64_t called_ns = 0;       ///< CLOCK_MONOTONIC; 0: unknown
  int64_t returned_ns = 0;     ///< CLOCK_MONOTONIC; 0: unknown
  EpochId epoch = 0;
  uint32_t thread = kNoThread;
  bool awaits_return = false; ///< a collector reports when it returned
  bool has_values = false;    ///< the program said something of what it launched
  bool is_shown = false;      ///< its event was made
  bool is_over = false;       ///< only its return is missing

  bool lacks_return() const { return awaits_return && returned_ns == 0; }
};

/// Correlation id -> where the launch stood. `add` returns an older launch whose id was used again
/// before its record came.
class LaunchTable : public IdTable<LaunchRecord> {
public:
  /// Forgets launches of epochs that no phase needs any more; their records may still come.
  /// `live_epochs` ascend.
  void forget_except(const std::vector<EpochId> &live_epochs);
  /// Notes a launch whose phase was cleared before it got here.
  void forget() { ++forgotten_; }
  /// True when an unknown record is accounted for by a forgotten launch. A count is enough: one
  /// id per forgotten launch would grow without bound when their records never come.
  bool take_forgotten() { return forgotten_ != 0 && forgotten_-- != 0; }

private:
  uint64_t forgotten_ = 0;
};

} // namespace proton
