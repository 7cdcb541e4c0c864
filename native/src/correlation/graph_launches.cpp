#include "correlation/graph_launches.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>
#include <vector>

namespace proton {

bool CapturedAt::is_seen_by(uint32_t session) const {
  return std::find(sessions.begin(), sessions.end(), session) != sessions.end();
}

size_t CaptureStore::Hash::operator()(const Capture &at) const noexcept {
  uint64_t hash = (uint64_t{at.shadow} << 32 | at.python) * 0x9E3779B97F4A7C15ull;
  return (hash ^ at.epoch) * 0xC2B2AE3D27D4EB4Full;
}

bool CaptureStore::Same::operator()(const Capture &left, const Capture &right) const noexcept {
  return left.shadow == right.shadow && left.python == right.python && left.epoch == right.epoch;
}

CaptureId CaptureStore::keep(const Capture &at, const std::vector<uint32_t> &sessions) {
  auto [found, is_new] = known_.try_emplace(at, next_);
  if (!is_new) {
    ++places_.at(found->second).references;
    return found->second;
  }
  try {
    places_.try_emplace(next_, CapturedAt{at, sessions, {}, 1});
  } catch (...) {
    known_.erase(found);
    throw;
  }
  return next_++;
}

CaptureId CaptureStore::keep(const Capture &at, const std::vector<uint32_t> &sessions,
                             std::vector<UserMetric> metrics) {
  places_.try_emplace(next_, CapturedAt{at, sessions, std::move(metrics), 1});
  return next_++;
}

void CaptureStore::keep(CaptureId id) {
  auto found = places_.find(id);
  if (found != places_.end())
    ++found->second.references;
}

void CaptureStore::give_back(CaptureId id) {
  auto found = places_.find(id);
  if (found == places_.end() || --found->second.references != 0)
    return;
  if (found->second.metrics.empty())
    known_.erase(found->second.at);
  places_.erase(found);
}

const CapturedAt *CaptureStore::find(CaptureId id) const {
  auto found = places_.find(id);
  return found == places_.end() ? nullptr : &found->second;
}

void CaptureStore::append_ids(std::vector<ContextId> &ids) const {
  for (const auto &[id, place] : places_) {
    ids.push_back(place.at.shadow);
    ids.push_back(place.at.python);
  }
}

namespace {

// More than the thousand launches that a driver queues for a device, because the host may read
// nothing between the last of them and the end; small enough for a thousand graphs.
constexpr uint32_t kMostEntries = 2048;
constexpr uint32_t kRingWords = 32768; ///< of sets of many values, which get fewer entries
constexpr uint32_t kLeastEntries = 16;

} // namespace

DeviceValues::DeviceValues(uint64_t *words, uint32_t size, bool is_float, bool is_vector)
    : words_(words), size_(size), capacity_(capacity_of(size)), is_float_(is_float),
      is_vector_(is_vector) {
  exist_.store(true, std::memory_order_relaxed);
}

std::atomic<bool> DeviceValues::exist_{false};

uint32_t DeviceValues::capacity_of(uint32_t size) {
  return std::clamp(kRingWords / (size + 1), kLeastEntries, kMostEntries);
}

size_t DeviceValues::bytes(uint32_t size) {
  return (kHeaderWords + size_t{capacity_of(size)} * (size + 1)) * sizeof(uint64_t);
}

void DeviceValues::pull() {
  uint64_t count = std::atomic_ref(words_[0]).load(std::memory_order_acquire);
  while (next_ < count) {
    if (overdue_ != 0)
      --overdue_;
    else
      came_.push_back(read(next_));
    ++next_;
    std::atomic_ref(words_[1]).store(next_, std::memory_order_release);
  }
}

std::optional<MetricValue> DeviceValues::take() {
  pull();
  if (came_.empty()) {
    ++overdue_;
    return std::nullopt;
  }
  std::optional<MetricValue> value = std::move(came_.front());
  came_.pop_front();
  return value;
}

void DeviceValues::skip() {
  overdue_ = 0;
  pull();
  came_.clear();
}

std::optional<MetricValue> DeviceValues::read(uint64_t number) const {
  const uint64_t *entry = words_ + kHeaderWords + number % capacity_ * (size_ + 1);
  if (entry[0] != number + 1)
    return std::nullopt;
  if (is_float_) {
    std::vector<double> values;
    for (uint32_t i = 1; i <= size_; ++i)
      values.push_back(std::bit_cast<double>(entry[i]));
    return is_vector_ ? MetricValue(std::move(values)) : MetricValue(values[0]);
  }
  std::vector<int64_t> values;
  for (uint32_t i = 1; i <= size_; ++i)
    values.push_back(std::bit_cast<int64_t>(entry[i]));
  return is_vector_ ? MetricValue(std::move(values)) : MetricValue(values[0]);
}

const GraphNode *LayoutEntry::find(uint64_t node) {
  std::vector<GraphNode> &nodes = layout.nodes;
  size_t next = newest + 1 < nodes.size() ? newest + 1 : 0;
  if (next < nodes.size() && nodes[next].id == node) {
    newest = next;
    return &nodes[next];
  }
  auto found = std::lower_bound(nodes.begin(), nodes.end(), node,
                                [](const GraphNode &each, uint64_t id) { return each.id < id; });
  if (found == nodes.end() || found->id != node)
    return nullptr;
  newest = static_cast<size_t>(found - nodes.begin());
  return &*found;
}

LayoutId GraphLaunches::add(GraphLayout layout) {
  if (layouts_.size() >= kMaxLayouts / 2)
    return 0;
  while (next_ == 0 || layouts_.contains(next_))
    next_ = (next_ + 1) % kMaxLayouts;
  auto fresh = std::make_unique<LayoutEntry>();
  std::sort(layout.nodes.begin(), layout.nodes.end(),
            [](const GraphNode &left, const GraphNode &right) { return left.id < right.id; });
  for (const GraphNode &node : layout.nodes)
    fresh->kernels += node.is_kernel ? 1 : 0;
  if (layout.is_whole)
    fresh->kernels = 1;
  fresh->layout = std::move(layout);
  const GraphLayout &kept = fresh->layout;
  auto placed = layouts_.emplace(next_, std::move(fresh)).first;
  for (const GraphNode &node : kept.nodes)
    captures_.keep(node.at);
  for (CaptureId metrics : kept.metrics)
    captures_.keep(metrics);
  next_ = (next_ + 1) % kMaxLayouts;
  return placed->first;
}

void GraphLaunches::retire(LayoutId id) {
  auto found = layouts_.find(id);
  if (found == layouts_.end())
    return;
  found->second->is_retired = true;
  std::deque<uint64_t> &waiting = found->second->waiting;
  retired_.insert(retired_.end(), waiting.begin(), waiting.end());
  waiting.clear();
  erase_if_unused(id, *found->second);
}

void GraphLaunches::erase_if_unused(LayoutId id, LayoutEntry &entry) {
  if (!entry.is_retired || entry.launches != 0)
    return;
  for (const GraphNode &node : entry.layout.nodes)
    captures_.give_back(node.at);
  for (CaptureId metrics : entry.layout.metrics)
    captures_.give_back(metrics);
  layouts_.erase(id);
}

LayoutEntry &GraphLaunches::entry(LayoutId id) {
  auto found = layouts_.find(id);
  if (found != layouts_.end())
    return *found->second;
  unknown_.layout.is_known = unknown_.layout.is_exact = false;
  return unknown_;
}

OpenGraph &GraphLaunches::open(const LaunchRecord &launch) {
  LayoutEntry &layout = entry(launch.code);
  OpenGraph &open = open_[launch.correlation_id];
  open.launch = launch;
  open.layout = &layout;
  open.missing = layout.kernels;
  ++layout.launches;
  if (layout.layout.is_known && layout.kernels == 0) // no record says that it is over
    layout.waiting.push_back(launch.correlation_id);
  return open;
}

OpenGraph *GraphLaunches::find(uint64_t correlation_id) {
  auto found = open_.find(correlation_id);
  return found == open_.end() ? nullptr : &found->second;
}

CaptureId GraphLaunches::note(OpenGraph &open, uint64_t node, bool is_kernel) {
  LayoutEntry &entry = *open.layout;
  const GraphNode *found = entry.find(node);
  if (entry.layout.is_whole && node != kWholeGraph) // made before launches were recorded whole
    entry.layout.is_whole = entry.layout.is_known = entry.layout.is_exact = false;
  bool is_expected = entry.layout.is_whole ? node == kWholeGraph
                                           : is_kernel && found != nullptr && found->is_kernel;
  bool is_first = !std::exchange(open.has_records, true);
  bool is_over_with_last = entry.layout.is_known && entry.layout.is_exact;
  bool waits_already = entry.layout.is_known && entry.kernels == 0;
  if (is_first && !is_over_with_last && !waits_already)
    (entry.is_retired ? retired_ : entry.waiting).push_back(open.launch.correlation_id);
  if (is_expected && open.missing != 0)
    open.is_complete = --open.missing == 0 && entry.layout.is_known;
  return found ? found->at : 0;
}

uint64_t GraphLaunches::take_settled(OpenGraph &open) {
  std::deque<uint64_t> &waiting = open.layout->waiting;
  bool has_kernels = !open.layout->layout.is_known || open.layout->kernels != 0;
  if (waiting.size() <= (has_kernels ? kWaiting : kMaxQueued))
    return 0;
  return pop(waiting);
}

uint64_t GraphLaunches::take_settled_retired() {
  return retired_.size() <= kMaxQueued ? 0 : pop(retired_);
}

uint64_t GraphLaunches::pop(std::deque<uint64_t> &ids) {
  uint64_t oldest = ids.front();
  ids.pop_front();
  return oldest;
}

void GraphLaunches::close(uint64_t correlation_id) {
  auto found = open_.find(correlation_id);
  if (found == open_.end())
    return;
  LayoutEntry &entry = *found->second.layout;
  LayoutId id = found->second.launch.code;
  open_.erase(found);
  --entry.launches;
  if (&entry != &unknown_)
    erase_if_unused(id, entry);
}

} // namespace proton
