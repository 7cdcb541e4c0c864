#include "aggregate/consumer/epoch_table.h"

#include <algorithm>
#include <utility>

#include "context/thread/current.h"

namespace proton {

void RecordCounts::add(const RecordCounts &other) {
  launches += other.launches;
  records += other.records;
  failed += other.failed;
  dropped += other.dropped;
  cleared += other.cleared;
  ranges += other.ranges;
  metrics += other.metrics;
  instances += other.instances;
  samples += other.samples;
  drain_ns += other.drain_ns;
}

Epoch *EpochTable::current() {
  SessionState now = session_state();
  return now.active ? find(now.epoch) : nullptr;
}

EpochId EpochTable::begin(std::vector<EpochMember> members) {
  const Epoch *newest = find(newest_id_);
  if (newest && newest->members == members)
    return newest_id_;
  epochs_[++newest_id_].members = std::move(members);
  return newest_id_;
}

void EpochTable::lose(const char *reason, uint64_t count, const Epoch *epoch) {
  if (!epoch)
    epoch = current();
  if (!epoch)
    return;
  for (const EpochMember &member : epoch->members)
    member.tree->lose(reason, count);
}

RecordCounts EpochTable::counts_of(const SessionTree &session) const {
  RecordCounts total;
  for (const auto &[id, epoch] : epochs_)
    for (const EpochMember &member : epoch.members)
      if (member.tree == &session)
        total.add(epoch.counts);
  return total;
}

bool EpochTable::is_complete(const SessionTree &session, uint32_t phase) const {
  for (const auto &[id, epoch] : epochs_)
    for (const EpochMember &member : epoch.members)
      if (member.tree == &session && member.phase == phase && !epoch.counts.is_complete())
        return false;
  return true;
}

std::vector<EpochMember> EpochTable::sessions() const {
  std::vector<EpochMember> found;
  for (auto epoch = epochs_.rbegin(); epoch != epochs_.rend(); ++epoch)
    for (const EpochMember &member : epoch->second.members)
      if (std::none_of(found.begin(), found.end(),
                       [&](const EpochMember &each) { return each.tree == member.tree; }))
        found.push_back(member);
  return found;
}

RecordCounts EpochTable::drop(const SessionTree &session, uint32_t phase) {
  RecordCounts dropped;
  for (auto &[id, epoch] : epochs_) {
    auto is_its = [&](const EpochMember &member) {
      return member.tree == &session && member.phase == phase;
    };
    if (std::erase_if(epoch.members, is_its) == 0)
      continue;
    RecordCounts counts = epoch.counts;
    counts.cleared += counts.outstanding(); // their records are not looked at when they come
    dropped.add(counts);
  }
  return dropped;
}

void EpochTable::drop(const SessionTree &session) {
  for (auto &[id, epoch] : epochs_)
    std::erase_if(epoch.members, [&](const EpochMember &each) { return each.tree == &session; });
}

std::vector<EpochId> EpochTable::trim() {
  std::erase_if(epochs_, [](const auto &item) { return item.second.members.empty(); });
  std::vector<EpochId> live;
  live.reserve(epochs_.size());
  for (const auto &[id, epoch] : epochs_)
    live.push_back(id);
  return live;
}

} // namespace proton
