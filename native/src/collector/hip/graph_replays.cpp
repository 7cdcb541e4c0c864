#include "collector/hip/graph_replays.h"

#include <algorithm>
#include <utility>

#include "collector/hip/hip_records.h"

namespace proton {
namespace {

constexpr size_t kNoNode = static_cast<size_t>(-1);

} // namespace

void GraphReplays::begin(uint64_t launch, std::shared_ptr<GraphPlan> plan, uint32_t stream) {
  // Never destroyed: threads may launch while the process ends.
  static const auto &unknown =
      *new std::shared_ptr<GraphPlan>(std::make_shared<GraphPlan>(GraphPlan{{}, false, {}}));
  if (!plan)
    plan = unknown;
  Replay replay;
  replay.stream = stream;
  replay.left = plan->kernels.size();
  replay.has_run.resize(replay.left);
  replay.plan = std::move(plan);
  std::lock_guard lock(mutex_);
  if (replays_.size() >= make_room_at_)
    make_room();
  replays_[launch] = std::move(replay);
  count_.store(replays_.size(), std::memory_order_release);
}

/// No flush came. Later records of the launches that are dropped are shown by their names.
void GraphReplays::make_room() {
  std::erase_if(replays_, [](const auto &each) { return each.second.left == 0; });
  if (replays_.size() >= kMostReplays) { // of nodes that are disabled no record ever comes
    std::vector<uint64_t> launches;
    launches.reserve(replays_.size());
    for (const auto &[each, replay] : replays_)
      launches.push_back(each);
    auto middle = launches.begin() + static_cast<ptrdiff_t>(launches.size() / 2);
    std::nth_element(launches.begin(), middle, launches.end());
    std::erase_if(replays_, [oldest = *middle](const auto &each) { return each.first < oldest; });
  }
  make_room_at_ = std::clamp(2 * replays_.size(), kManyReplays, kMostReplays);
}

void GraphReplays::end(uint64_t launch) noexcept {
  std::lock_guard lock(mutex_);
  replays_.erase(launch);
  count_.store(replays_.size(), std::memory_order_release);
}

void GraphReplays::end_up_to(uint64_t newest_launch) noexcept {
  std::lock_guard lock(mutex_);
  std::erase_if(replays_,
                [newest_launch](const auto &each) { return each.first <= newest_launch; });
  count_.store(replays_.size(), std::memory_order_release);
}

bool GraphReplays::has(uint64_t launch) noexcept {
  std::lock_guard lock(mutex_);
  return replays_.contains(launch);
}

size_t GraphReplays::find(const Replay &replay, const Dispatch &dispatch) {
  const std::vector<NodeKey> &kernels = replay.plan->kernels;
  const std::vector<uint32_t> &order = replay.plan->order;
  auto first = [&](auto &&fits) {
    for (size_t i = replay.lowest; i < kernels.size(); ++i)
      if (!replay.has_run[i] && fits(kernels[i].key))
        return i;
    return kNoNode;
  };
  if (dispatch.is_counted && dispatch.ordinal < order.size()) {
    size_t planned = order[dispatch.ordinal];
    if (!replay.has_run[planned] && kernels[planned].key == dispatch.key)
      return planned;
  }
  size_t found = kNoNode;
  if (dispatch.has_shape)
    found = first([&](uint64_t key) { return key == dispatch.key; });
  // The shape of a node may have been changed in the executable graph.
  if (found == kNoNode)
    found = first([&](uint64_t key) {
      return key != 0 && dispatch.key != 0 && name_of_key(key) == name_of_key(dispatch.key);
    });
  if (found == kNoNode)
    found = first([&](uint64_t key) { return key == 0; });
  return found;
}

void GraphReplays::learn(Replay &replay, const std::vector<Dispatch> &dispatches,
                         const std::vector<size_t> &found) {
  std::vector<uint32_t> &order = replay.plan->order;
  bool is_whole = dispatches.size() == replay.plan->kernels.size() && order.empty();
  for (size_t i = 0; i < dispatches.size() && is_whole; ++i)
    is_whole = dispatches[i].is_counted && dispatches[i].ordinal == i && found[i] != kNoNode;
  if (is_whole)
    order.assign(found.begin(), found.end());
}

uint32_t GraphReplays::match(uint64_t launch, std::vector<Dispatch> &dispatches) {
  std::lock_guard lock(mutex_);
  auto open = replays_.find(launch);
  if (open == replays_.end()) {
    for (size_t i = 0; i < dispatches.size(); ++i)
      dispatches[i].node = kUnknownNode | i;
    return 0;
  }
  Replay &replay = open->second;
  std::vector<size_t> found;
  found.reserve(dispatches.size());
  for (Dispatch &dispatch : dispatches) {
    size_t place = find(replay, dispatch);
    found.push_back(place);
    dispatch.node = place == kNoNode ? kUnknownNode | replay.unknown++ //
                                     : replay.plan->kernels[place].node;
    if (place == kNoNode)
      continue;
    replay.has_run[place] = true;
    --replay.left;
    while (replay.lowest < replay.has_run.size() && replay.has_run[replay.lowest])
      ++replay.lowest;
  }
  learn(replay, dispatches, found);
  uint32_t stream = replay.stream;
  if (replay.left == 0 && replay.plan->is_exact)
    replays_.erase(open);
  count_.store(replays_.size(), std::memory_order_release);
  return stream;
}

} // namespace proton
