#include "aggregate/times/device_times.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <iterator>
#include <string_view>

#include "support/error.h"

namespace proton {
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
