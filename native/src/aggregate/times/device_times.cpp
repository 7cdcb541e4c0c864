#include "aggregate/times/device_times.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <iterator>
#include <limits>
#include <string_view>

#include "calltree/call_path_tree.h"
#include "support/error.h"

namespace proton {

/// Removes from what stands aside the parts before the end of what is closed.
void IntervalUnion::cut_late() {
  for (Block &one : aside_) {
    if (one.start_ns >= closed_until_ns_)
      continue;
    late_ns_ += std::min(one.end_ns, closed_until_ns_) - one.start_ns;
    one.start_ns = closed_until_ns_;
  }
  std::erase_if(aside_, [](const Block &one) { return one.end_ns < one.start_ns; });
}

void IntervalUnion::merge() {
  if (aside_.empty())
    return;
  if (has_closed_)
    cut_late();
  auto begins_before = [](const Block &one, const Block &other) {
    return one.start_ns < other.start_ns;
  };
  std::stable_sort(aside_.begin(), aside_.end(), begins_before);
  std::vector<Block> all;
  all.reserve(blocks_.size() + aside_.size());
  std::merge(blocks_.begin(), blocks_.end(), aside_.begin(), aside_.end(), std::back_inserter(all),
             begins_before);
  aside_.clear();
  blocks_.clear();
  for (const Block &one : all) {
    if (!blocks_.empty() && one.start_ns <= blocks_.back().end_ns)
      blocks_.back().end_ns = std::max(blocks_.back().end_ns, one.end_ns);
    else
      blocks_.push_back(one);
  }
}

void IntervalUnion::forget_older(size_t count) {
  if (count == 0)
    return;
  if (!has_closed_)
    first_closed_ = blocks_.front();
  has_closed_ = true;
  for (size_t i = 0; i < count; ++i)
    closed_ns_ += blocks_[i].end_ns - blocks_[i].start_ns;
  closed_until_ns_ = blocks_[count - 1].end_ns;
  blocks_.erase(blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>(count));
}

int64_t IntervalUnion::covered_ns() {
  merge();
  int64_t covered_ns = closed_ns_;
  for (const Block &block : blocks_)
    covered_ns += block.end_ns - block.start_ns;
  return covered_ns;
}

namespace {

constexpr int64_t kEver = std::numeric_limits<int64_t>::max();

/// Gives `take` the time that each sample shares with gaps; both are in order. Removes what lies
/// before the end of the other list.
template <typename Samples, typename Gaps, typename Take>
void intersect(Samples &samples, Gaps &gaps, Take take) {
  while (!samples.empty() && !gaps.empty()) {
    auto &sample = samples.front();
    const Gap &gap = gaps.front();
    int64_t shared_ns =
        std::min(sample.end_ns, gap.end_ns) - std::max(sample.start_ns, gap.start_ns);
    if (shared_ns > 0)
      take(sample.node, shared_ns);
    if (sample.end_ns <= gap.end_ns)
      samples.pop_front();
    else
      gaps.pop_front();
  }
}

} // namespace

void HostIdle::add_gap(const Gap &gap) {
  gaps_.push_back(gap);
  if (gaps_.size() > kMostWaiting) // of a span without a sample, such as a long call into C code
    gaps_.pop_front();
}

void HostIdle::match() {
  intersect(samples_, gaps_,
            [this](NodeIndex node, int64_t shared_ns) { idle_[node].known_ns += shared_ns; });
}

void HostIdle::add_work(int64_t start_ns, int64_t end_ns) {
  if (!work_.add(start_ns, end_ns, 0))
    return;
  if (!has_closed_)
    add_gap({-kEver, work_.first_start_ns(), 0});
  has_closed_ = true;
  work_.close_older([this](const Gap &gap) { add_gap(gap); });
  match();
}

void HostIdle::add_sample(NodeIndex node, int64_t start_ns, int64_t end_ns) {
  if (!samples_.empty() && samples_.back().node == node && samples_.back().end_ns == start_ns) {
    samples_.back().end_ns = end_ns;
    return;
  }
  samples_.push_back({start_ns, end_ns, node});
  if (samples_.size() <= kMostWaiting)
    return;
  // No device has worked for many minutes.
  const Span &oldest = samples_.front();
  idle_[oldest.node].known_ns += oldest.end_ns - oldest.start_ns;
  samples_.pop_front();
}

void HostIdle::publish(CallPathTree &tree) {
  if (work_.empty())
    return;
  match();
  std::deque<Span> samples = samples_;
  std::deque<Gap> gaps = gaps_;
  if (!has_closed_)
    gaps.push_back({-kEver, work_.first_start_ns(), 0});
  work_.for_each_open_gap([&](const Gap &gap) { gaps.push_back(gap); });
  gaps.push_back({work_.last_end_ns(), kEver, 0});
  std::unordered_map<NodeIndex, int64_t> now_ns;
  for (const auto &[node, idle] : idle_)
    now_ns[node] = idle.known_ns;
  intersect(samples, gaps, [&](NodeIndex node, int64_t shared_ns) { now_ns[node] += shared_ns; });
  size_t column = tree.metrics().builtin(kIdle, Aggregation::kInclusive);
  for (const auto &[node, idle_ns] : now_ns) {
    Idle &idle = idle_[node];
    if (idle.shown_ns != idle_ns)
      tree.metrics().add_int(column, node, idle_ns - idle.shown_ns);
    idle.shown_ns = idle_ns;
  }
}

void PauseList::pause(int64_t now_ns) {
  if (pauses_.size() == kMost) // half at once, so that forgetting costs nothing per pause
    pauses_.erase(pauses_.begin(), pauses_.begin() + kMost / 2);
  pauses_.push_back({now_ns, INT64_MAX});
}

void PauseList::resume(int64_t now_ns) {
  if (!pauses_.empty() && pauses_.back().end_ns == INT64_MAX)
    pauses_.back().end_ns = now_ns;
}

int64_t PauseList::sum_within(int64_t start_ns, int64_t end_ns) const {
  int64_t sum_ns = 0;
  auto pause = std::upper_bound(pauses_.begin(), pauses_.end(), start_ns,
                                [](int64_t at, const Pause &entry) { return at < entry.end_ns; });
  for (; pause != pauses_.end() && pause->start_ns < end_ns; ++pause)
    sum_ns += std::min(pause->end_ns, end_ns) - std::max(pause->start_ns, start_ns);
  return sum_ns;
}

namespace {

constexpr const char *kLatencySum = "launch_latency_sum (ns)";
constexpr const char *kLatencyCount = "launch_latency_count";
constexpr const char *kWaitingKernel = "waiting_kernel";

// Times may be any bytes of a file; nearer ones than these can be subtracted and summed.
constexpr int64_t kFarNs = int64_t{1} << 61;

/// NCCL's kernels spend their time until the other devices have come, too.
bool waits_for_others(const char *kernel) {
  std::string_view name(kernel);
  if (name.starts_with("_Z")) { // a mangled name: its length, then the name
    size_t begin = 2;
    while (begin < name.size() && std::isdigit(static_cast<unsigned char>(name[begin])))
      ++begin;
    name.remove_prefix(begin);
  }
  return name.starts_with("ncclDevKernel") || name.starts_with("ncclKernel");
}

} // namespace

void DeviceTimes::Account::note_waiting(int64_t start_ns, int64_t end_ns, bool is_waiting) {
  if (is_waiting && !working)
    working = std::make_unique<IntervalUnion>(busy);
  if (!is_waiting && working->add(start_ns, end_ns, kNoScope))
    working->close_older([](const Gap &) {});
}

void DeviceTimes::close_gaps(Device &device) const {
  uint32_t owner = kNoScope;
  IdleTime run; // of gaps in a row with one owner
  auto give = [&] {
    device.idle.add(run);
    if (owner != kNoScope)
      device.scopes[owner]->idle.add(run);
    run = {};
  };
  device.account.busy.close_older([&](const Gap &gap) {
    if (gap.owner != owner)
      give();
    owner = gap.owner;
    run.add_gap(idle_in(gap));
  });
  give();
}

DeviceUse DeviceTimes::Account::summary(NodeIndex node, int32_t device, const IdleTime &closed) {
  DeviceUse use;
  use.node = node;
  use.device = device;
  use.busy_ns = busy.covered_ns();
  use.idle = closed;
  use.waiting_ns = working ? std::max<int64_t>(0, use.busy_ns - working->covered_ns()) : 0;
  use.uncertain_ns = busy.late_ns();
  use.latency = latency;
  return use;
}

DeviceTimes::Device &DeviceTimes::device(int32_t index) {
  for (const auto &known : devices_)
    if (known->device == index)
      return *known;
  devices_.push_back(std::make_unique<Device>(index));
  return *devices_.back();
}

DeviceTimes::Scope *DeviceTimes::scope(Device &device, const CallPathTree &tree, NodeIndex node) {
  NodeIndex above = tree.nodes()[node].parent;
  if (above == kRootNode || above == kNoNode)
    return nullptr;
  while (tree.nodes()[above].parent != kRootNode)
    above = tree.nodes()[above].parent;
  auto found = device.scope_of.find(above);
  if (found != device.scope_of.end())
    return found->second;
  size_t number = device.scopes.size();
  if (number >= kMostScopes)
    return nullptr;
  size_t fewest_open = number < kManyScopes ? kFewestOpenOfScope : kFewestOpenOfMany;
  device.scopes.push_back(
      std::make_unique<Scope>(above, static_cast<uint32_t>(number), fewest_open));
  return device.scope_of[above] = device.scopes.back().get();
}

DeviceTimes::Leaf &DeviceTimes::leaf(const CallPathTree &tree, NodeIndex node,
                                     const char *device_kind, const char *kernel) {
  auto [found, is_new] = leaves_.try_emplace(node);
  Leaf &leaf = found->second;
  if (!is_new || std::strcmp(device_kind, "CPU") == 0)
    return leaf;
  leaf.is_kernel = kernel != nullptr;
  leaf.is_waiting = kernel && waits_for_others(kernel);
  Device &own = device(tree.nodes()[node].device);
  leaf.scope = scope(own, tree, node);
  leaf.device = &own;
  return leaf;
}

void DeviceTimes::add(Leaf &leaf, int64_t start_ns, int64_t end_ns, int64_t called_ns) {
  bool is_sane = start_ns >= -kFarNs && end_ns <= kFarNs && start_ns <= end_ns;
  if (!leaf.device || !is_sane)
    return;
  if (idle_)
    idle_->add_work(start_ns, end_ns);
  Device &device = *leaf.device;
  Account *account = &device.account;
  uint32_t owner = kNoScope;
  if (leaf.scope) {
    account = &leaf.scope->account;
    owner = leaf.scope->number;
    if (account->cover(start_ns, end_ns, leaf.is_waiting, owner))
      account->busy.close_older([](const Gap &) {});
  }
  if (device.account.cover(start_ns, end_ns, leaf.is_waiting, owner))
    close_gaps(device);
  if (called_ns == 0 || called_ns < -kFarNs || called_ns > kFarNs)
    return;
  device.first_call_ns = std::min(device.first_call_ns, called_ns);
  if (!leaf.is_kernel)
    return;
  int64_t latency_ns = start_ns - called_ns;
  if (!account->latency.add(latency_ns))
    return;
  ++leaf.launches;
  leaf.latency_ns += latency_ns;
}

void DeviceTimes::publish_device(Device &device, std::vector<DeviceUse> &uses) const {
  IntervalUnion &busy = device.account.busy;
  if (busy.empty())
    return;
  DeviceUse whole = device.account.summary(kRootNode, device.device, device.idle);
  std::vector<DeviceUse> scopes;
  scopes.reserve(device.scopes.size());
  for (const auto &scope : device.scopes) {
    scopes.push_back(scope->account.summary(scope->node, device.device, scope->idle));
    whole.latency.merge(scope->account.latency);
  }
  auto give = [&](const Gap &gap) {
    int64_t idle_ns = idle_in(gap);
    whole.idle.add_gap(idle_ns);
    if (gap.owner != kNoScope)
      scopes[gap.owner].idle.add_gap(idle_ns);
  };
  if (device.first_call_ns < busy.first_start_ns())
    give({device.first_call_ns, busy.first_start_ns(), busy.first_owner()});
  busy.for_each_open_gap(give);
  uses.push_back(std::move(whole));
  std::move(scopes.begin(), scopes.end(), std::back_inserter(uses));
}

void DeviceTimes::publish(CallPathTree &tree) {
  std::vector<DeviceUse> uses;
  for (const auto &device : devices_)
    publish_device(*device, uses);
  tree.set_device_use(std::move(uses));
  MetricColumns &metrics = tree.metrics();
  try {
    for (const auto &[node, leaf] : leaves_) {
      if (leaf.is_waiting)
        metrics.set_own(kWaitingKernel, Aggregation::kProperty, node, 1);
      if (leaf.launches == 0)
        continue;
      metrics.set_own(kLatencySum, Aggregation::kInclusive, node, leaf.latency_ns);
      metrics.set_own(kLatencyCount, Aggregation::kInclusive, node,
                      static_cast<int64_t>(leaf.launches));
    }
  } catch (const Error &) { // a user's metric has the name and another type: it stays
  }
}

} // namespace proton
