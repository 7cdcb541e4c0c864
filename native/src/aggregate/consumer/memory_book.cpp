#include "aggregate/consumer/memory_book.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "aggregate/memory/memory_use.h"
#include "calltree/context_tree.h"
#include "context/thread/current.h"

namespace proton {
namespace {

constexpr const char *kMissed = "changes of device memory that were not recorded";

constexpr int64_t kShownPart = 256; ///< of the peak: smaller changes are not in timelines

uint64_t place_of(ContextId shadow, ContextId python) { return uint64_t{shadow} << 32 | python; }

} // namespace

template <typename Change> void MemoryBook::tell(const Epoch *epoch, Change &&change) {
  if (!epoch)
    return;
  for (const EpochMember &member : epoch->members)
    if (member.tree->takes_memory())
      change(member, member.tree->memory(member.phase));
}

NodeIndex MemoryBook::node_of(const EpochMember &member, const Block &block) {
  return block.is_placed ? member.tree->memory_node(member.phase, block.shadow, block.python)
                         : member.tree->unplaced_memory_node(member.phase);
}

void MemoryBook::hold(const Block &block, bool holds) {
  if (!block.is_placed)
    return;
  auto place = places_.try_emplace(place_of(block.shadow, block.python), 0).first;
  place->second += holds ? 1 : -1;
  if (place->second == 0)
    places_.erase(place);
}

void MemoryBook::append_ids(std::vector<ContextId> &ids) const {
  for (auto [place, count] : places_) {
    ids.push_back(static_cast<ContextId>(place >> 32));
    ids.push_back(static_cast<ContextId>(place));
  }
}

void MemoryBook::forget() {
  blocks_.clear();
  places_.clear();
  accounts_.clear();
  epoch_ = 0;
  watch_lines_at({});
}

void MemoryBook::begin_epoch(EpochId id) {
  if (id == epoch_ || accounts_.empty())
    return;
  if (Epoch *before = epochs_.find(epoch_))
    watch_growing(*before);
  epoch_ = id;
  const Epoch *epoch = epochs_.find(id);
  if (!epoch)
    return;
  ContextTree &contexts = ContextTree::instance();
  for (auto [place, count] : places_) // rows of the phase stand for them from now on
    for (auto context : {static_cast<ContextId>(place >> 32), static_cast<ContextId>(place)})
      if (context != 0)
        contexts.touch(context, id);
  tell(epoch, [&](const EpochMember &member, MemoryUse &use) {
    use.begin_alive(step_);
    for (const auto &[address, block] : blocks_)
      use.add_alive(node_of(member, block), block.device, block.bytes);
    for (const auto &[device, account] : accounts_)
      if (account.unknown != 0)
        use.add_alive(member.tree->unplaced_memory_node(member.phase), device, account.unknown);
    use.end_alive();
  });
}

void MemoryBook::watch_growing(const Epoch &epoch) {
  std::vector<ContextId> growing;
  tell(&epoch, [&](const EpochMember &member, MemoryUse &use) {
    const std::vector<NodeIndex> rows = use.growing();
    for (auto [place, count] : places_) {
      const auto shadow = static_cast<ContextId>(place >> 32);
      const Block block{0, -1, shadow, static_cast<ContextId>(place), true};
      if (!rows.empty() && std::count(rows.begin(), rows.end(), node_of(member, block)) != 0 &&
          std::count(growing.begin(), growing.end(), shadow) == 0)
        growing.push_back(shadow);
    }
  });
  if (!growing.empty()) // else those of a longer window go on
    watch_lines_at(growing);
}

void MemoryBook::add(const MemoryRecord &record) {
  step_ = record.step;
  Account &account = accounts_[record.device];
  begin_epoch(record.at.epoch);
  Epoch *epoch = epochs_.find(record.at.epoch);
  auto known = blocks_.find(record.address);
  const bool is_allocated = record.change == MemoryChange::kAllocated;
  if (is_allocated && known != blocks_.end()) { // that it was freed was not recorded
    drop(known, epoch);
    known = blocks_.end();
  }
  int64_t change = 0;
  if (record.change != MemoryChange::kOutOfMemory)
    change = is_allocated ? record.bytes : -record.bytes;
  reconcile(account, record.device, record.total_bytes - change, epoch);
  if (is_allocated)
    add_block(record, account, epoch);
  else if (record.change == MemoryChange::kFreed)
    free_block(record, account, epoch);
  else
    tell(epoch, [&](const EpochMember &member, MemoryUse &use) {
      use.out_of_memory(member.tree->memory_node(member.phase, record.at.shadow, record.at.python),
                        record.device, record.bytes);
    });
  tell(epoch,
       [](const EpochMember &member, MemoryUse &) { member.tree->note_change(member.phase); });
  account.peak = std::max(account.peak, record.total_bytes);
  if (record.at_ns != 0 && epoch)
    show(account, record, *epoch);
}

void MemoryBook::drop(Blocks::iterator known, const Epoch *epoch) {
  const Block &block = known->second;
  accounts_[block.device].blocks -= block.bytes;
  tell(epoch, [&](const EpochMember &member, MemoryUse &use) {
    use.shift(node_of(member, block), block.device, -block.bytes);
  });
  hold(block, false);
  blocks_.erase(known);
}

void MemoryBook::reconcile(Account &account, int32_t device, int64_t counted, const Epoch *epoch) {
  const int64_t more = counted - account.blocks - account.unknown;
  if (std::exchange(account.is_known, true) && more != 0)
    epochs_.lose(kMissed, 1, epoch);
  shift_unknown(account, device, more, epoch);
}

void MemoryBook::shift_unknown(Account &account, int32_t device, int64_t bytes,
                               const Epoch *epoch) {
  account.unknown += bytes;
  if (bytes == 0)
    return;
  tell(epoch, [&](const EpochMember &member, MemoryUse &use) {
    use.shift(member.tree->unplaced_memory_node(member.phase), device, bytes);
  });
}

void MemoryBook::add_block(const MemoryRecord &record, Account &account, const Epoch *epoch) {
  Block block;
  block.bytes = record.bytes;
  block.device = record.device;
  block.is_placed = epoch != nullptr;
  if (block.is_placed) { // else its contexts may be gone
    block.shadow = record.at.shadow;
    block.python = record.at.python;
  }
  account.blocks += block.bytes;
  hold(block, true);
  blocks_.emplace(record.address, block);
  tell(epoch, [&](const EpochMember &member, MemoryUse &use) {
    use.allocated(node_of(member, block), block.device, block.bytes, record.step);
  });
}

void MemoryBook::free_block(const MemoryRecord &record, Account &account, const Epoch *epoch) {
  auto known = blocks_.find(record.address);
  if (known == blocks_.end())
    return shift_unknown(account, record.device, -record.bytes, epoch);
  const Block block = known->second;
  account.blocks -= block.bytes;
  tell(epoch, [&](const EpochMember &member, MemoryUse &use) {
    use.freed(node_of(member, block), block.device, block.bytes, record.step);
  });
  hold(block, false);
  blocks_.erase(known);
}

void MemoryBook::show(Account &account, const MemoryRecord &record, const Epoch &epoch) {
  const int64_t change = std::abs(record.total_bytes - account.shown);
  if (account.shown >= 0 && change * kShownPart < account.peak)
    return;
  account.shown = record.total_bytes;
  static const Name allocated("allocated memory (bytes)");
  const EventCounter reading{ticks_.monotonic(record.at_ns), record.device, allocated,
                             static_cast<double>(record.total_bytes)};
  for (const EpochMember &member : epoch.members)
    if (SessionEvents *events = member.tree->events())
      events->add(member.phase, {reading});
}

} // namespace proton
