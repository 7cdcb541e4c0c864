#include "writer/tree/upstream_tree.h"

#include <vector>

#include "calltree/host_rows.h"
#include "check.h"
#include "writer/tree/profile_writer.h"
#include "writer/tree/sample_tree.h"

using namespace proton;

namespace {

NodeIndex under(CallPathTree &tree, NodeIndex parent, const char *name, FrameKind kind,
                int32_t device = kNone, int32_t variant = kNone) {
  return tree.child(parent, Name(name), kind, device, variant);
}

void took(CallPathTree &tree, NodeIndex node, int64_t time_ns) {
  tree.metrics().add(node, "time (ns)", Aggregation::kInclusive, time_ns);
  tree.metrics().add(node, "count", Aggregation::kInclusive, int64_t{1});
}

std::string shape(const CallPathTree &tree, NodeIndex node = kRootNode) {
  std::string text(tree.nodes()[node].name.text());
  const char *before = "(";
  for (NodeIndex child = tree.nodes()[node].first_child; child != kNoNode;
       child = tree.nodes()[child].next_sibling) {
    text += before + shape(tree, child);
    before = " ";
  }
  return tree.nodes()[node].first_child == kNoNode ? text : text + ")";
}

MetricValue value(const CallPathTree &tree, NodeIndex node, const char *name) {
  for (const MetricColumn &column : tree.metrics().columns())
    if (column.name == name && column.has(node))
      return column.value(node);
  return int64_t{-1};
}

} // namespace

TEST(trials_of_an_autotuner_are_launches_like_others) {
  CallPathTree tree;
  NodeIndex layer = under(tree, kRootNode, "layer", FrameKind::kScope);
  NodeIndex trials = under(tree, layer, "<autotune>", FrameKind::kState);
  took(tree, under(tree, trials, "mm", FrameKind::kKernel, 0), 5);
  took(tree, under(tree, layer, "mm", FrameKind::kKernel, 0), 7);

  CallPathTree shown = upstream_tree(tree);

  CHECK_EQ(shape(shown), "ROOT(layer(mm))");
  CHECK(value(shown, 2, "time (ns)") == MetricValue(int64_t{12}));
  CHECK(value(shown, 2, "count") == MetricValue(int64_t{2}));
  CHECK_EQ(shown.nodes()[2].device, 0);
}

TEST(siblings_of_one_name_are_one_node_on_the_last_device) {
  CallPathTree tree;
  took(tree, under(tree, kRootNode, "work", FrameKind::kKernel, 0), 1);
  took(tree, under(tree, kRootNode, "work", FrameKind::kKernel, 1), 2);
  NodeIndex scope = under(tree, kRootNode, "work", FrameKind::kScope);
  under(tree, scope, "inside", FrameKind::kScope);

  CallPathTree shown = upstream_tree(tree);

  CHECK_EQ(shape(shown), "ROOT(work(inside))");
  CHECK(value(shown, 1, "time (ns)") == MetricValue(int64_t{3}));
  CHECK_EQ(shown.nodes()[1].device, 1);
}

TEST(lines_stand_directly_below_their_kernel) {
  CallPathTree tree;
  NodeIndex kernel = under(tree, kRootNode, "mm", FrameKind::kKernel, 0);
  NodeIndex caller = under(tree, kernel, "a.py:1@mm", FrameKind::kLine);
  under(tree, caller, "b.py:2@sum", FrameKind::kLine);
  NodeIndex other = under(tree, kernel, "a.py:3@mm", FrameKind::kLine);
  NodeIndex twice = under(tree, other, "b.py:2@sum", FrameKind::kLine);
  tree.metrics().add(twice, "num_samples", Aggregation::kInclusive, int64_t{4});

  CallPathTree shown = upstream_tree(tree);

  CHECK_EQ(shape(shown), "ROOT(mm(a.py:1@mm b.py:2@sum a.py:3@mm))");
  CHECK(value(shown, 3, "num_samples") == MetricValue(int64_t{4}));
}

TEST(values_of_a_graph_have_the_frame_of_their_kernel) {
  CallPathTree tree;
  under(tree, kRootNode, "a", FrameKind::kScope);
  NodeIndex replay = under(tree, kRootNode, "replay", FrameKind::kScope);
  NodeIndex captured = under(tree, replay, "<captured_at>", FrameKind::kGraph);
  NodeIndex scope = under(tree, captured, "a", FrameKind::kScope);
  tree.metrics().add(scope, "items", Aggregation::kInclusive, int64_t{1});
  VariantRecord variant;
  variant.raw_name = "foo";
  int32_t position = tree.variant(captured, Name("foo_8"), variant);
  NodeIndex named = under(tree, captured, "foo_8", FrameKind::kKernel, 0, position);
  took(tree, named, 3);
  tree.metrics().add(named, "flops", Aggregation::kInclusive, 8.0);
  took(tree, under(tree, scope, "plain", FrameKind::kKernel, 0), 3);
  took(tree, under(tree, replay, "after", FrameKind::kKernel, 0), 3);

  CHECK_EQ(shape(upstream_tree(tree)),
           "ROOT(a(plain) replay(after <captured_at>(a(__proton_launch_metadata(<metric>) plain) "
           "foo_8 __proton_launch_metadata(foo(<metric>)))) foo_8)");
}

TEST(the_call_of_a_graph_whose_capture_was_not_seen_is_not_a_frame) {
  CallPathTree tree;
  NodeIndex replay = under(tree, kRootNode, "replay", FrameKind::kScope);
  under(tree, replay, "<captured_at>", FrameKind::kGraph);

  CHECK_EQ(shape(upstream_tree(tree)), "ROOT(replay)");
}

TEST(columns_of_our_own_are_left_out_and_lengths_are_padded) {
  CallPathTree tree;
  NodeIndex first = under(tree, kRootNode, "work", FrameKind::kKernel, 0);
  NodeIndex second = under(tree, kRootNode, "work", FrameKind::kKernel, 1);
  tree.metrics().set_own("launches", Aggregation::kInclusive, first, 5);
  tree.metrics().add(first, "vec", Aggregation::kInclusive, std::vector<int64_t>{1, 2});
  tree.metrics().add(second, "vec", Aggregation::kInclusive, std::vector<int64_t>{10});

  CallPathTree shown = upstream_tree(tree);

  CHECK_EQ(shown.metrics().columns().size(), size_t{1});
  CHECK(value(shown, 1, "vec") == MetricValue(std::vector<int64_t>{11, 2}));
}

TEST(only_upstreams_formats_have_upstreams_shape) {
  CallPathTree tree;
  NodeIndex trials = under(tree, kRootNode, "<autotune>", FrameKind::kState);
  took(tree, under(tree, trials, "mm", FrameKind::kKernel, 0), 5);
  FileFacts facts;
  auto has_trials = [&](FileFormat format) {
    return encode_profile(tree, {}, facts, format).find("<autotune>") != std::string::npos;
  };

  CHECK(has_trials(FileFormat::kHatchet));
  facts.upstream_shape = true;
  for (FileFormat format :
       {FileFormat::kHatchet, FileFormat::kHatchetCompact, FileFormat::kHatchetMsgpack})
    CHECK(!has_trials(format));
  CHECK(encode_profile(tree, {}, facts, FileFormat::kProton).size() > 0);
}

TEST(samples_of_the_host_are_left_out) {
  CallPathTree tree;
  NodeIndex scope = tree.child(kRootNode, Name("step"), FrameKind::kScope);
  NodeIndex host = tree.child(kRootNode, Name(kNotRecorded), FrameKind::kPython);
  NodeIndex line = tree.child(host, Name("x.py:1@<module>"), FrameKind::kPython);
  tree.metrics().add(scope, kHostWall, Aggregation::kInclusive, int64_t{3});
  NodeIndex op = tree.child(line, Name("aten::item"), FrameKind::kOp);
  tree.metrics().add(line, kHostWall, Aggregation::kInclusive, int64_t{7});
  tree.metrics().add(op, kHostWall, Aggregation::kInclusive, int64_t{2});
  CallPathTree shown = upstream_tree(tree);
  CHECK_EQ(shape(shown), "ROOT(step)");
  CHECK(shown.metrics().columns().empty());
}

TEST(tests_of_pytest_are_not_rows) {
  CallPathTree tree;
  NodeIndex file = under(tree, kRootNode, "test_a.py", FrameKind::kTest);
  NodeIndex call =
      under(tree, under(tree, file, "test_one", FrameKind::kTest), "call", FrameKind::kTest);
  took(tree, under(tree, call, "fill", FrameKind::kKernel, 0), 3);
  took(tree, under(tree, under(tree, call, "step", FrameKind::kScope), "mm", FrameKind::kKernel, 0),
       5);
  CHECK_EQ(shape(upstream_tree(tree)), "ROOT(fill step(mm))");
}

TEST(a_kernel_too_short_for_a_sample_has_none_of_them) {
  CallPathTree tree;
  NodeIndex fill = under(tree, kRootNode, "fill", FrameKind::kKernel, 0);
  NodeIndex mm = under(tree, kRootNode, "mm", FrameKind::kKernel, 0);
  NodeIndex line = under(tree, mm, "m.py:3@mm", FrameKind::kLine);
  took(tree, fill, 1);
  took(tree, mm, 9);
  CHECK(!upstream_tree(tree).metrics().columns().empty()); // no samples, no metric of them
  tree.metrics().add(line, "num_samples", Aggregation::kInclusive, int64_t{7});
  CallPathTree shown = upstream_tree(tree);
  CHECK(value(shown, 1, "num_samples") == MetricValue(int64_t{0}));
  CHECK(value(shown, 3, "num_samples") == MetricValue(int64_t{7}));
  for (const MetricColumn &column : shown.metrics().columns())
    CHECK(column.name != "num_samples" || !column.has(2));
}
