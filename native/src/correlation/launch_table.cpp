#include "correlation/launch_table.h"

#include <algorithm>
#include <utility>

namespace proton {
namespace {

constexpr size_t kFirstSlots = 1024;

} // namespace

size_t LaunchTable::home(uint64_t id) const {
  // Groups of 64 ids spread by a multiplication, so that two sources that count from different
  // starts do not pile up on each other.
  uint64_t group = (id >> kGroupBits) * 0x9E3779B97F4A7C15ull;
  // Within its group an id is moved round by bits of the same product, for ids a group apart.
  uint64_t slot = ((group >> 24) << kGroupBits) | ((id + (group >> 18)) & (kGroup - 1));
  return static_cast<size_t>(slot) & (slots_.size() - 1);
}

size_t LaunchTable::find(uint64_t id) const {
  size_t slot = home(id);
  for (size_t tries = slots_.size() >> kGroupBits; tries != 0; --tries) {
    if (slots_[slot].correlation_id == id || slots_[slot].correlation_id == 0)
      break;
    slot = next(slot);
  }
  return slot;
}

void LaunchTable::resize(size_t slots) {
  std::vector<LaunchRecord> old = std::exchange(slots_, std::vector<LaunchRecord>(slots));
  used_ = 0;
  for (const LaunchRecord &launch : old)
    if (launch.correlation_id != 0)
      add(launch);
}

std::optional<LaunchRecord> LaunchTable::add(const LaunchRecord &launch) {
  if (2 * (used_ + 1) > slots_.size())
    resize(slots_.empty() ? kFirstSlots : 2 * slots_.size());
  size_t place = find(launch.correlation_id);
  // One place of all groups may be taken while the table is nearly empty.
  while (slots_[place].correlation_id != launch.correlation_id &&
         slots_[place].correlation_id != 0) {
    resize(2 * slots_.size());
    place = find(launch.correlation_id);
  }
  LaunchRecord &slot = slots_[place];
  if (slot.correlation_id != 0)
    return std::exchange(slot, launch);
  slot = launch;
  ++used_;
  return std::nullopt;
}

std::optional<LaunchRecord> LaunchTable::take(uint64_t correlation_id) {
  if (used_ == 0 || correlation_id == 0)
    return std::nullopt;
  size_t hole = find(correlation_id);
  if (slots_[hole].correlation_id != correlation_id)
    return std::nullopt;
  LaunchRecord taken = slots_[hole];
  slots_[hole].correlation_id = 0;
  --used_;
  // What was pushed on by this one moves back, so that no search has to step over a grave.
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
  return taken;
}

void LaunchTable::forget_except(const std::vector<EpochId> &live_epochs) {
  remove_if([&](const LaunchRecord &launch) {
    bool is_live = std::binary_search(live_epochs.begin(), live_epochs.end(), launch.at.epoch);
    forgotten_ += !is_live && launch.kind == LaunchKind::kKernel ? 1 : 0;
    return !is_live;
  });
}

} // namespace proton
