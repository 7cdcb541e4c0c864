#include "writer/hatchet_writer.h"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "writer/merged_tree.h"
#include "writer/utf8_text.h"

namespace proton {
namespace {

constexpr const char *kDeviceIdKey = "device_id";
constexpr const char *kDeviceTypeKey = "device_type";
constexpr std::string_view kExclusive[] = {"cpu_time (ns)", "wall (ns)", "cycles",
                                           "normalized_cycles"};

/// One possible key of a node's `metrics`.
struct Slot {
  enum class Source { kColumn, kDeviceId, kDeviceType };
  std::string key;
  Source source = Source::kColumn;
  const MetricColumn *column = nullptr;
};

// Upstream misspells one metric, and so do its readers.
std::string shown_name(const MetricColumn &column) {
  return column.name == "stalled_not_selected" ? "stalled_not_Selected" : valid_utf8(column.name);
}

// Columns of our own are for `.proton` alone.
bool has_values(const MetricColumn &column) {
  if (column.is_own)
    return false;
  return !column.int_vectors.empty() || !column.double_vectors.empty() ||
         std::find(column.valid.begin(), column.valid.end(), true) != column.valid.end();
}

bool is_scalar(const MetricColumn &column) {
  return column.type == MetricType::kInt || column.type == MetricType::kDouble;
}

// Readers take a metric for inclusive when ROOT has it.
bool is_hint(const MetricColumn &column) {
  return column.aggregation == Aggregation::kInclusive && is_scalar(column);
}

// Inclusive scalars have their hint at ROOT (a vector there breaks upstream's viewer), and
// readers know what nests (times of the host, cycles) by name; the others are stated.
StatedAggregations stated_aggregations(const MetricColumns &metrics) {
  StatedAggregations stated;
  for (const MetricColumn &column : metrics.columns()) {
    bool is_known = std::find(std::begin(kExclusive), std::end(kExclusive), column.name) !=
                    std::end(kExclusive);
    bool is_told = is_hint(column) || (is_known && column.aggregation == Aggregation::kExclusive);
    if (!is_told && has_values(column))
      stated[valid_utf8(column.name)] = aggregation_text(column.aggregation);
  }
  return stated;
}

// Upstream's order in MessagePack: the kernel's own metrics, then the user's by name.
int builtin_rank(const std::string &key) {
  constexpr const char *kFirst[] = {"time (ns)", "count", kDeviceIdKey, kDeviceTypeKey};
  return static_cast<int>(std::find(std::begin(kFirst), std::end(kFirst), key) -
                          std::begin(kFirst));
}

std::vector<Slot> make_slots(const MetricColumns &metrics, bool sorts_keys) {
  std::vector<Slot> slots;
  slots.push_back({kDeviceIdKey, Slot::Source::kDeviceId, nullptr});
  slots.push_back({kDeviceTypeKey, Slot::Source::kDeviceType, nullptr});
  for (const MetricColumn &column : metrics.columns())
    if (has_values(column))
      slots.push_back({shown_name(column), Slot::Source::kColumn, &column});
  std::sort(slots.begin(), slots.end(), [sorts_keys](const Slot &left, const Slot &right) {
    int left_rank = sorts_keys ? 0 : builtin_rank(left.key);
    int right_rank = sorts_keys ? 0 : builtin_rank(right.key);
    return std::tie(left_rank, left.key) < std::tie(right_rank, right.key);
  });
  return slots;
}

int64_t wrapping_sum(int64_t left, int64_t right) {
  return static_cast<int64_t>(static_cast<uint64_t>(left) + static_cast<uint64_t>(right));
}

void accumulate(int64_t &total, int64_t value) { total = wrapping_sum(total, value); }
void accumulate(double &total, double value) { total += value; }

// Vectors of variants may differ in length; the shorter counts as padded with zeros.
template <typename Number>
void accumulate(std::vector<Number> &total, const std::vector<Number> &value) {
  total.resize(std::max(total.size(), value.size()));
  for (size_t i = 0; i < value.size(); ++i)
    accumulate(total[i], value[i]);
}

class Walk {
public:
  Walk(const CallPathTree &tree, const std::vector<Device> &devices, Emitter &emitter)
      : tree_(tree), devices_(devices), emitter_(emitter), layout_(emitter.layout()),
        merged_(tree, kMaxHatchetDepth), slots_(make_slots(tree.metrics(), layout_.sorts_keys)) {}

  std::string run();

private:
  void enter(NodeIndex head);
  void leave(NodeIndex head);
  void frame(NodeIndex head);
  void add_field(NodeIndex head, const Slot &slot);
  template <typename Value, typename Get> void add_sum(NodeIndex head, const Slot &slot, Get get);
  bool has_metrics(NodeIndex head) const;
  bool is_shown(NodeIndex head) const;
  NodeIndex shown_from(NodeIndex head) const;
  const Device *device_of(NodeIndex head) const;
  DeviceMap seen_devices() const;

  const CallPathTree &tree_;
  const std::vector<Device> &devices_;
  Emitter &emitter_;
  const Layout layout_;
  const MergedTree merged_;
  const std::vector<Slot> slots_;
  std::vector<MetricField> fields_; // reused from node to node
  std::string scratch_;
};

const Device *Walk::device_of(NodeIndex head) const {
  auto position = static_cast<size_t>(tree_.nodes()[head].device);
  return tree_.nodes()[head].device >= 0 && position < devices_.size() ? &devices_[position]
                                                                       : nullptr;
}

bool Walk::has_metrics(NodeIndex head) const {
  for (NodeIndex node = head; node != kNoNode; node = merged_.next_member(node)) {
    for (const Slot &slot : slots_)
      if (slot.column != nullptr && slot.column->has(node))
        return true;
  }
  return false;
}

bool Walk::is_shown(NodeIndex head) const {
  return !layout_.drops_empty_leaves || merged_.first_child(head) != kNoNode || has_metrics(head);
}

// The first sibling from `head` on that is written.
NodeIndex Walk::shown_from(NodeIndex head) const {
  while (head != kNoNode && !is_shown(head))
    head = merged_.next_sibling(head);
  return head;
}

template <typename Value, typename Get>
void Walk::add_sum(NodeIndex head, const Slot &slot, Get get) {
  Value total{};
  bool is_found = false;
  for (NodeIndex node = head; node != kNoNode; node = merged_.next_member(node)) {
    if (!slot.column->has(node))
      continue;
    if (slot.column->aggregation == Aggregation::kProperty)
      total = get(node);
    else
      accumulate(total, get(node));
    is_found = true;
  }
  if (head == kRootNode && !is_hint(*slot.column))
    return; // readers would take the metric for an inclusive one
  if (is_found)
    fields_.push_back({slot.key, std::move(total)});
  else if (head == kRootNode)
    fields_.push_back({slot.key, int64_t{0}});
}

void Walk::add_field(NodeIndex head, const Slot &slot) {
  const Device *device = device_of(head);
  if (slot.source != Slot::Source::kColumn) {
    if (device != nullptr) {
      bool is_id = slot.source == Slot::Source::kDeviceId;
      fields_.push_back(
          {slot.key, is_id ? std::to_string(device->index) : valid_utf8(device->kind)});
    }
    return;
  }
  // A user's metric of that name would be a second entry with the same key.
  if (device != nullptr && (slot.key == kDeviceIdKey || slot.key == kDeviceTypeKey))
    return;
  const MetricColumn &column = *slot.column;
  switch (column.type) {
  case MetricType::kInt:
    add_sum<int64_t>(head, slot, [&](NodeIndex node) { return column.ints[node]; });
    break;
  case MetricType::kDouble:
    add_sum<double>(head, slot, [&](NodeIndex node) { return column.doubles[node]; });
    break;
  case MetricType::kIntVector:
    add_sum<std::vector<int64_t>>(
        head, slot, [&](NodeIndex node) -> auto & { return column.int_vectors.at(node); });
    break;
  case MetricType::kDoubleVector:
    add_sum<std::vector<double>>(
        head, slot, [&](NodeIndex node) -> auto & { return column.double_vectors.at(node); });
    break;
  }
}

void Walk::frame(NodeIndex head) {
  fields_.clear();
  for (const Slot &slot : slots_)
    add_field(head, slot);
  emitter_.frame(valid_utf8(tree_.nodes()[head].name.text(), scratch_), fields_);
}

void Walk::enter(NodeIndex head) {
  emitter_.open_node(head == kRootNode ? stated_aggregations(tree_.metrics())
                                       : StatedAggregations{});
  if (layout_.frame_before_children)
    frame(head);
  size_t count = 0;
  for (NodeIndex child = shown_from(merged_.first_child(head)); child != kNoNode;
       child = shown_from(merged_.next_sibling(child))) {
    ++count;
  }
  emitter_.open_children(count);
}

void Walk::leave(NodeIndex head) {
  emitter_.close_children();
  if (!layout_.frame_before_children)
    frame(head);
  emitter_.close_node();
}

DeviceMap Walk::seen_devices() const {
  std::vector<bool> is_seen(devices_.size(), false);
  for (NodeIndex node = kRootNode; node < tree_.nodes().size(); ++node)
    if (const Device *device = device_of(node))
      is_seen[static_cast<size_t>(device - devices_.data())] = true;
  DeviceMap seen;
  for (size_t position = 0; position < devices_.size(); ++position) {
    const Device &device = devices_[position];
    if (is_seen[position])
      seen[valid_utf8(device.kind)][std::to_string(device.index)] = device;
  }
  return seen;
}

std::string Walk::run() {
  NodeIndex node = kRootNode;
  enter(node);
  for (;;) {
    if (NodeIndex child = shown_from(merged_.first_child(node)); child != kNoNode) {
      node = child;
      enter(node);
      continue;
    }
    leave(node);
    NodeIndex next = kNoNode;
    while (node != kRootNode && next == kNoNode) {
      next = shown_from(merged_.next_sibling(node));
      if (next == kNoNode) {
        node = merged_.parent(node);
        leave(node);
      }
    }
    if (next == kNoNode)
      return emitter_.finish(seen_devices());
    node = next;
    enter(node);
  }
}

} // namespace

std::string write_hatchet(const CallPathTree &tree, const std::vector<Device> &devices,
                          Emitter &emitter) {
  return Walk(tree, devices, emitter).run();
}

bool folds_in_hatchet(const CallPathTree &tree) {
  return MergedTree(tree, kMaxHatchetDepth).is_folded();
}

} // namespace proton
