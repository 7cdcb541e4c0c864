// Samples of program counters on their way to the sessions that listened.
#include <algorithm>
#include <mutex>

#include "aggregate/consumer/aggregator.h"
#include "record/pc_sample_record.h"

namespace proton {

std::vector<EpochMember> Aggregator::sampled_members() const {
  std::vector<EpochMember> members;
  for (auto epoch = epochs.rbegin(); epoch != epochs.rend(); ++epoch)
    for (const EpochMember &member : epoch->second.members)
      if (std::none_of(members.begin(), members.end(),
                       [&](const EpochMember &each) { return each.session == member.session; }))
        members.push_back(member);
  return members;
}

void Aggregator::complete(const PcSampleRecord &record) noexcept {
  try {
    std::lock_guard lock(mutex);
    drain();
    if (Epoch *epoch = find_epoch(record.at.epoch))
      for (const EpochMember &member : epoch->members)
        member.tree->add_samples(member.phase, record);
  } catch (...) { // out of memory, or a user's metric has the name of ours
    dropped({"samples of a kernel not stored", 1, true});
  }
}

void Aggregator::complete(std::span<const PcSampleRecord> records) noexcept {
  try {
    std::lock_guard lock(mutex);
    drain();
    for (const EpochMember &member : sampled_members()) {
      member.tree->add_samples(member.phase, records, kernel_times_);
      member.tree->begin_samples();
    }
    kernel_times_.begin_window();
  } catch (...) { // as above
    dropped({"samples of kernels not stored", 1, true});
  }
}

void Aggregator::begin_samples() noexcept {
  try {
    std::lock_guard lock(mutex);
    drain();
    if (!kernel_times_.is_on())
      kernel_times_.start();
    kernel_times_.begin_window();
    for (const EpochMember &member : sampled_members())
      member.tree->begin_samples();
  } catch (...) { // out of memory: work of before takes part in the shares
    dropped({"beginning of PC samples not noted", 1, true});
  }
}

void Aggregator::end_samples() noexcept {
  std::lock_guard lock(mutex);
  kernel_times_.stop();
  for (const EpochMember &member : sampled_members())
    member.tree->end_samples();
}

} // namespace proton
