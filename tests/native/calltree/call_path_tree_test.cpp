#include "calltree/call_path_tree.h"

#include "check.h"

using namespace proton;

namespace {

struct Trace {
  std::string text;
  uint32_t deepest = 0;
  const CallPathTree &tree;

  void enter(NodeIndex node, uint32_t depth) {
    deepest = std::max(deepest, depth);
    text += "<" + std::string(tree.nodes()[node].name.text());
  }
  void leave(NodeIndex, uint32_t) { text += ">"; }
};

NodeIndex scope(CallPathTree &tree, NodeIndex parent, const char *name) {
  return tree.child(parent, Name(name), FrameKind::kScope);
}

} // namespace

TEST(a_new_tree_is_its_root) {
  CallPathTree tree;
  CHECK_EQ(tree.nodes().size(), 1);
  CHECK_EQ(tree.nodes()[kRootNode].name.text(), "ROOT");
  CHECK(tree.nodes()[kRootNode].kind == FrameKind::kRoot);
}

TEST(a_child_is_made_once) {
  CallPathTree tree;
  NodeIndex child = scope(tree, kRootNode, "a");
  CHECK_EQ(scope(tree, kRootNode, "a"), child);
  CHECK_EQ(tree.nodes()[child].parent, kRootNode);
  CHECK_EQ(tree.nodes().size(), 2);
}

TEST(kind_device_and_variant_distinguish_children) {
  CallPathTree tree;
  NodeIndex nodes[] = {tree.child(kRootNode, Name("k"), FrameKind::kScope),
                       tree.child(kRootNode, Name("k"), FrameKind::kOp),
                       tree.child(kRootNode, Name("k"), FrameKind::kKernel, 0),
                       tree.child(kRootNode, Name("k"), FrameKind::kKernel, 1),
                       tree.child(kRootNode, Name("k"), FrameKind::kKernel, 1, 0),
                       tree.child(kRootNode, Name("k"), FrameKind::kKernel, 1, 1)};
  for (size_t i = 0; i < std::size(nodes); ++i)
    CHECK_EQ(nodes[i], i + 1);
}

TEST(a_kernel_that_only_its_launch_named_takes_the_device_of_its_first_record) {
  CallPathTree tree;
  NodeIndex launch = tree.child(kRootNode, Name("k"), FrameKind::kKernel);
  CHECK_EQ(tree.child(kRootNode, Name("k"), FrameKind::kKernel, 0, 3), launch);
  CHECK_EQ(tree.nodes()[launch].device, 0);
  CHECK_EQ(tree.nodes()[launch].variant, 3);
  CHECK_EQ(tree.child(kRootNode, Name("k"), FrameKind::kKernel), launch);
  CHECK(tree.child(kRootNode, Name("k"), FrameKind::kKernel, 1, 3) != launch);
}

TEST(the_walk_is_preorder_in_order_of_insertion) {
  CallPathTree tree;
  NodeIndex a = scope(tree, kRootNode, "a");
  scope(tree, kRootNode, "b");
  scope(tree, a, "a1");
  scope(tree, a, "a2");
  Trace trace{"", 0, tree};
  tree.walk(trace);
  CHECK_EQ(trace.text, "<ROOT<a<a1><a2>><b>>");
  CHECK_EQ(trace.deepest, 2);
}

TEST(the_walk_needs_no_recursion) {
  CallPathTree tree;
  NodeIndex node = kRootNode;
  for (int i = 0; i < 100'000; ++i)
    node = scope(tree, node, "n");
  Trace trace{"", 0, tree};
  tree.walk(trace);
  CHECK_EQ(trace.deepest, 100'000);
}

TEST(equal_variants_have_one_position) {
  CallPathTree tree;
  Name name("k");
  VariantRecord record;
  record.signature = "i32";
  int32_t position = tree.variant(kRootNode, name, record);
  CHECK_EQ(tree.variant(kRootNode, name, record), position);
  CHECK_EQ(tree.variant(kRootNode, Name("other"), record), position);
  record.code_hash = 1;
  CHECK(tree.variant(kRootNode, name, record) != position);
}

TEST(past_sixty_four_variants_of_a_path_the_rest_is_other) {
  CallPathTree tree;
  Name name("k");
  VariantRecord record;
  for (uint32_t hash = 1; hash <= kMaxVariantsPerPath; ++hash) {
    record.code_hash = hash;
    tree.variant(kRootNode, name, record);
  }
  record.code_hash = 1000;
  int32_t other = tree.variant(kRootNode, name, record);
  CHECK_EQ(tree.variants()[static_cast<size_t>(other)].signature, "other");
  record.code_hash = 1001;
  CHECK_EQ(tree.variant(kRootNode, name, record), other);
  record.code_hash = 3;
  CHECK_EQ(tree.variant(kRootNode, name, record), 2);
}

TEST(a_tree_keeps_its_names_alive_and_frees_them) {
  size_t before = live_name_count();
  {
    CallPathTree tree;
    scope(tree, kRootNode, "only here");
    CHECK(live_name_count() >= before + 1);
  }
  CHECK_EQ(live_name_count(), before);
}

TEST(devices_and_variants_past_65_536_are_distinguished) {
  CallPathTree tree;
  auto leaf = [&](int32_t device, int32_t variant) {
    return tree.child(kRootNode, Name("k"), FrameKind::kKernel, device, variant);
  };
  CHECK(leaf(0, 0) != leaf(65536, 0));
  CHECK(leaf(1, 0) != leaf(1, 65536));
  CHECK(leaf(65536, 0) == leaf(65536, 0));
}

TEST(metrics_of_a_launch_come_to_the_kernel_of_the_same_shapes) {
  CallPathTree tree;
  Name name("k");
  NodeIndex small = tree.kernel(kRootNode, name, "f32[2]");
  NodeIndex large = tree.kernel(kRootNode, name, "f32[8]");
  CHECK(small != large);
  VariantRecord record;
  record.grid[0] = 4;
  record.signature = "f32[8]";
  int32_t variant = tree.variant(kRootNode, name, record);
  CHECK_EQ(tree.child(kRootNode, name, FrameKind::kKernel, 0, variant), large);
  CHECK_EQ(tree.kernel(kRootNode, name, "f32[8]"), large);
  record.grid[0] = 2; // another kernel of the same shapes
  NodeIndex other =
      tree.child(kRootNode, name, FrameKind::kKernel, 0, tree.variant(kRootNode, name, record));
  CHECK(other != large && other != small);
  CHECK_EQ(tree.kernel(kRootNode, name, "f32[8]"), large);
  record.signature = "f32[2]";
  CHECK_EQ(
      tree.child(kRootNode, name, FrameKind::kKernel, 0, tree.variant(kRootNode, name, record)),
      small);
}
