#include "writer/tree/hatchet_writer.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>

#include "writer/bytes/utf8_text.h"
#include "writer/tree/merged_tree.h"

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
  bool is_hint = false;
};

// Upstream misspells one metric, and its readers expect that.
std::string shown_name(const MetricColumn &column) {
  return column.name == "stalled_not_selected" ? "stalled_not_Selected" : valid_utf8(column.name);
}

// Our own columns are for `.proton` only.
bool has_values(const MetricColumn &column) {
  if (column.is_own)
    return false;
  return !column.is_empty();
}

bool is_scalar(const MetricColumn &column) {
  MetricType type = column.type();
  return type == MetricType::kInt || type == MetricType::kDouble;
}

// Readers take a metric for inclusive if ROOT has it.
bool is_hint(const MetricColumn &column) {
  return column.aggregation == Aggregation::kInclusive && is_scalar(column);
}

// Inclusive scalars have their hint at ROOT (a vector there breaks upstream's viewer), and readers
// know nesting metrics (times of the host, cycles) by name; the others are stated.
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
  slots.push_back({kDeviceIdKey, Slot::Source::kDeviceId, nullptr, false});
  slots.push_back({kDeviceTypeKey, Slot::Source::kDeviceType, nullptr, false});
  for (const MetricColumn &column : metrics.columns())
    if (has_values(column))
      slots.push_back({shown_name(column), Slot::Source::kColumn, &column, is_hint(column)});
  std::sort(slots.begin(), slots.end(), [sorts_keys](const Slot &left, const Slot &right) {
    int left_rank = sorts_keys ? 0 : builtin_rank(left.key);
    int right_rank = sorts_keys ? 0 : builtin_rank(right.key);
    return std::tie(left_rank, left.key) < std::tie(right_rank, right.key);
  });
  return slots;
}

class Walk {
public:
  Walk(const CallPathTree &tree, const std::vector<Device> &devices, Emitter &emitter,
       bool states_aggregations)
      : states_aggregations_(states_aggregations), tree_(tree), devices_(devices),
        emitter_(emitter), layout_(emitter.layout()), merged_(tree, kMaxHatchetDepth),
        slots_(make_slots(tree.metrics(), layout_.sorts_keys)) {}

  std::string run();

private:
  void enter(NodeIndex head);
  void leave(NodeIndex head);
  void frame(NodeIndex head);
  void add_field(NodeIndex head, const Slot &slot);
  bool has_metrics(NodeIndex head) const;
  bool is_shown(NodeIndex head) const;
  NodeIndex shown_from(NodeIndex head) const;
  const Device *device_of(NodeIndex head) const;
  DeviceMap seen_devices() const;

  const bool states_aggregations_;
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

// The first written sibling from `head` on.
NodeIndex Walk::shown_from(NodeIndex head) const {
  while (head != kNoNode && !is_shown(head))
    head = merged_.next_sibling(head);
  return head;
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
  if (head == kRootNode && !slot.is_hint)
    return; // readers would take the metric for an inclusive one
  std::optional<MetricValue> total;
  for (NodeIndex node = head; node != kNoNode; node = merged_.next_member(node)) {
    if (!slot.column->has(node))
      continue;
    if (total)
      merge_value(*total, slot.column->aggregation, slot.column->value(node));
    else
      total = slot.column->value(node);
  }
  if (total && type_of(*total) == MetricType::kText)
    total = valid_utf8(std::get<std::string>(*total));
  if (total)
    fields_.push_back({slot.key, std::move(*total)});
  else if (head == kRootNode)
    fields_.push_back({slot.key, int64_t{0}});
}

void Walk::frame(NodeIndex head) {
  fields_.clear();
  for (const Slot &slot : slots_)
    add_field(head, slot);
  emitter_.frame(valid_utf8(tree_.nodes()[head].name.text(), scratch_), fields_);
}

void Walk::enter(NodeIndex head) {
  bool is_stated = head == kRootNode && states_aggregations_;
  emitter_.open_node(is_stated ? stated_aggregations(tree_.metrics()) : StatedAggregations{});
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
                          Emitter &emitter, bool states_aggregations) {
  return Walk(tree, devices, emitter, states_aggregations).run();
}

bool folds_in_hatchet(const CallPathTree &tree) {
  return MergedTree(tree, kMaxHatchetDepth).is_folded();
}

} // namespace proton
