#include "writer/tree/upstream_tree.h"

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "calltree/host_rows.h"

namespace proton {
namespace {

constexpr std::string_view kTrials = "<autotune>";
constexpr std::string_view kCaptured = "<captured_at>";

bool is_left_out(const MetricColumn &column) {
  return column.is_own || is_host_metric(column.name);
}

// Never given by a program: a node with any other metric was given values.
bool is_recorded(const MetricColumn &column) {
  return is_left_out(column) || column.name == "time (ns)" || column.name == "count" ||
         column.name == "wall (ns)";
}

class Reshaping {
public:
  explicit Reshaping(const CallPathTree &tree)
      : tree_(tree), shown_(tree.nodes().size(), kNoNode), is_captured_(tree.nodes().size(), false),
        live_(tree.nodes().size(), kNoNode) {}

  CallPathTree run();

private:
  NodeIndex named(NodeIndex parent, const Name &name) {
    return out_.child(parent, name, FrameKind::kUnknown);
  }
  bool has_given_values(NodeIndex node) const;
  void find_captured();
  void place(NodeIndex node);
  void add_helper(NodeIndex node);
  void find_live(NodeIndex node);
  void add_metrics();
  void add_unsampled(std::map<NodeIndex, MetricValue> &totals) const;

  const CallPathTree &tree_;
  CallPathTree out_;
  std::vector<NodeIndex> shown_; ///< of each node of the tree, that of the new one
  std::vector<bool> is_captured_;
  std::vector<NodeIndex> live_; ///< of what was captured, where that was
  std::map<std::pair<NodeIndex, const void *>, NodeIndex> entered_; ///< by parent and name
};

bool Reshaping::has_given_values(NodeIndex node) const {
  for (const MetricColumn &column : tree_.metrics().columns())
    if (!is_recorded(column) && column.has(node))
      return true;
  return false;
}

// A node comes after its parent, here as everywhere.
void Reshaping::find_captured() {
  for (NodeIndex index = kRootNode + 1; index < tree_.nodes().size(); ++index) {
    const TreeNode &node = tree_.nodes()[index];
    is_captured_[index] = is_captured_[node.parent] ||
                          (node.kind == FrameKind::kGraph && node.name.text() == kCaptured);
  }
}

void Reshaping::place(NodeIndex index) {
  const TreeNode &node = tree_.nodes()[index];
  bool is_host = shown_[node.parent] == kNoNode ||
                 (node.kind == FrameKind::kPython && node.parent == kRootNode &&
                  node.name.text() == kNotRecorded);
  bool is_copy = is_captured_[index] && node.kind == FrameKind::kCopy;
  if (is_host || is_copy)
    return; // samples of the host, and copies of graphs
  bool is_call = is_captured_[index] && node.kind == FrameKind::kGraph &&
                 node.first_child == kNoNode;   // it stands for the launch in a timeline
  bool is_test = node.kind == FrameKind::kTest; // of pytest, of which upstream knows nothing
  if (is_trials(node.kind, node.name.text()) || is_call || is_test) {
    shown_[index] = shown_[node.parent];
    return;
  }
  NodeIndex above = node.parent;
  while (node.kind == FrameKind::kLine && tree_.nodes()[above].kind == FrameKind::kLine)
    above = tree_.nodes()[above].parent;
  shown_[index] = named(shown_[above], node.name);
  if (!is_captured_[index])
    entered_.emplace(std::pair(shown_[above], node.name.key()), shown_[index]);
  if (node.device != kNone)
    out_.set_device(shown_[index], node.device);
  if (is_captured_[index] && has_given_values(index))
    add_helper(index);
}

// Helpers of a kernel's launch are distinguished by the name that it was compiled under.
void Reshaping::add_helper(NodeIndex index) {
  static const Name metadata("__proton_launch_metadata");
  static const Name helper("<metric>");
  const TreeNode &node = tree_.nodes()[index];
  if (node.kind != FrameKind::kKernel) {
    named(named(shown_[index], metadata), helper);
    return;
  }
  Name name = node.name;
  if (node.variant != kNone) {
    const Variant &variant = tree_.variants()[static_cast<size_t>(node.variant)];
    if (!variant.raw_name.empty())
      name = Name(variant.raw_name);
  }
  named(named(named(shown_[node.parent], metadata), name), helper);
}

// The scopes around it were entered, so they exist already. Scopes of a capture in another phase do
// not, and neither do its frames.
void Reshaping::find_live(NodeIndex index) {
  const TreeNode &node = tree_.nodes()[index];
  if (node.kind == FrameKind::kGraph) {
    live_[index] = kRootNode;
    return;
  }
  NodeIndex above = live_[node.parent];
  if (above == kNoNode)
    return;
  if (node.kind == FrameKind::kKernel) {
    named(above, node.name);
    return;
  }
  auto found = entered_.find({above, node.name.key()});
  if (found != entered_.end())
    live_[index] = found->second;
}

// Kernels too short for a sample have the metric all the same; that of others is on their lines.
void Reshaping::add_unsampled(std::map<NodeIndex, MetricValue> &totals) const {
  for (NodeIndex index = kRootNode + 1; index < tree_.nodes().size(); ++index) {
    const TreeNode &node = tree_.nodes()[index];
    if (node.kind == FrameKind::kKernel && node.first_child == kNoNode && shown_[index] != kNoNode)
      totals.try_emplace(shown_[index], int64_t{0});
  }
}

void Reshaping::add_metrics() {
  for (const MetricColumn &column : tree_.metrics().columns()) {
    if (is_left_out(column))
      continue;
    std::map<NodeIndex, MetricValue> totals;
    for (NodeIndex index = kRootNode; index < tree_.nodes().size(); ++index) {
      if (!column.has(index) || shown_[index] == kNoNode)
        continue;
      auto [total, is_first] = totals.try_emplace(shown_[index], column.value(index));
      if (!is_first)
        merge_value(total->second, column.aggregation, column.value(index));
    }
    if (column.name == "num_samples")
      add_unsampled(totals);
    for (const auto &[node, value] : totals)
      out_.metrics().add(node, column.name, column.aggregation, value);
  }
}

CallPathTree Reshaping::run() {
  auto size = static_cast<NodeIndex>(tree_.nodes().size());
  shown_[kRootNode] = kRootNode;
  find_captured();
  for (NodeIndex index = kRootNode + 1; index < size; ++index)
    if (!is_captured_[index])
      place(index);
  for (NodeIndex index = kRootNode + 1; index < size; ++index)
    if (is_captured_[index])
      find_live(index);
  for (NodeIndex index = kRootNode + 1; index < size; ++index)
    if (is_captured_[index])
      place(index);
  add_metrics();
  return std::move(out_);
}

} // namespace

bool is_trials(FrameKind kind, std::string_view name) {
  return kind == FrameKind::kState && name == kTrials;
}

CallPathTree upstream_tree(const CallPathTree &tree) { return Reshaping(tree).run(); }

} // namespace proton
