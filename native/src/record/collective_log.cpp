#include "record/collective_log.h"

#include <algorithm>
#include <utility>

#include "support/clock.h"
#include "support/fork_locks.h"

namespace proton {
namespace {

constexpr size_t kMostLaunched = 65536; // whose records did not come yet

/// Whether two ranks alone take part: the others do not count these calls.
bool is_between_two(std::string_view name) noexcept {
  return name.find(":send") != std::string_view::npos ||
         name.find(":recv") != std::string_view::npos;
}

} // namespace

CollectiveLog::CollectiveLog() { guard_across_fork(mutex_, LockRank::kCollectives); }

CollectiveLog &CollectiveLog::instance() {
  static auto *log = new CollectiveLog; // the target's threads may need it to the end
  return *log;
}

Collective CollectiveLog::begin(std::string_view name, std::string_view group, uint32_t ranks,
                                uint64_t bytes) {
  std::lock_guard lock(mutex_);
  auto &kinds = contents_.kinds;
  auto known = std::find_if(kinds.begin(), kinds.end(), [&](const Kind &each) {
    return each.name == name && each.group == group;
  });
  if (known == kinds.end()) {
    kinds.emplace_back();
    known = kinds.end() - 1;
    known->name = name;
    known->group = group;
    known->ranks = ranks;
  }
  std::string counted(group);
  if (is_between_two(name))
    counted.append(1, '\0').append(name);
  Collective call;
  call.kind = static_cast<uint32_t>(known - kinds.begin());
  call.number = numbers_[counted]++;
  call.bytes = bytes;
  call.start_ns = monotonic_ns();
  std::vector<Collective> &calls = contents_.calls;
  auto is_listed = [this](const Collective &each) { return each.number % contents_.every == 0; };
  while (is_listed(call) && calls.size() >= kMost) {
    contents_.every *= 2;
    std::erase_if(calls, [&](const Collective &each) { return !is_listed(each); });
  }
  if (is_listed(call))
    calls.push_back(call);
  return call;
}

void CollectiveLog::end(Collective call) noexcept {
  call.end_ns = monotonic_ns();
  std::lock_guard lock(mutex_);
  set_times(call);
}

void CollectiveLog::set_times(const Collective &call) noexcept {
  std::vector<Collective> &calls = contents_.calls;
  auto listed = std::find_if(calls.rbegin(), calls.rend(), [&](const Collective &each) {
    return each.number == call.number && each.kind == call.kind;
  });
  if (listed == calls.rend())
    return;
  listed->start_ns = call.start_ns;
  listed->end_ns = call.end_ns;
}

void CollectiveLog::launched(const Collective &call, uint64_t correlation_id) noexcept {
  std::lock_guard lock(mutex_);
  try {
    if (launched_.size() < kMostLaunched)
      launched_.insert_or_assign(correlation_id, call);
  } catch (...) { // no memory: its end stays unknown
  }
}

void CollectiveLog::ran(uint64_t correlation_id, int64_t start_ns, int64_t end_ns) noexcept {
  std::lock_guard lock(mutex_);
  auto found = launched_.find(correlation_id);
  if (found == launched_.end())
    return;
  Collective call = found->second;
  launched_.erase(found);
  call.start_ns = start_ns;
  call.end_ns = end_ns;
  set_times(call);
}

CollectiveLog::Contents CollectiveLog::contents() const {
  std::lock_guard lock(mutex_);
  return contents_;
}

void CollectiveLog::forget_calls() noexcept {
  std::lock_guard lock(mutex_);
  contents_.every = 1;
  contents_.calls.clear();
  launched_.clear();
}

} // namespace proton
