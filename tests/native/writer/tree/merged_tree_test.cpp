#include "writer/tree/merged_tree.h"

#include "check.h"
#include "writer/tree/sample_tree.h"

using namespace proton;

TEST(variants_of_one_kernel_are_one_group) {
  CallPathTree tree;
  NodeIndex first = sample::kernel(tree, kRootNode, "add", 1, 10);
  NodeIndex second = sample::kernel(tree, kRootNode, "add", 2, 20);
  MergedTree merged(tree, 480);
  CHECK_EQ(merged.first_child(kRootNode), first);
  CHECK_EQ(merged.next_sibling(first), kNoNode);
  CHECK_EQ(merged.next_member(first), second);
  CHECK_EQ(merged.next_member(second), kNoNode);
  CHECK(!merged.is_folded());
}

TEST(nodes_of_another_kind_device_or_name_stay_apart) {
  CallPathTree tree;
  NodeIndex nodes[] = {tree.child(kRootNode, Name("x"), FrameKind::kScope),
                       tree.child(kRootNode, Name("x"), FrameKind::kOp),
                       tree.child(kRootNode, Name("x"), FrameKind::kKernel, 0, 0),
                       tree.child(kRootNode, Name("x"), FrameKind::kKernel, 1, 0),
                       tree.child(kRootNode, Name("y"), FrameKind::kKernel, 1, 0)};
  MergedTree merged(tree, 480);
  NodeIndex child = merged.first_child(kRootNode);
  for (NodeIndex node : nodes) {
    CHECK_EQ(child, node);
    child = merged.next_sibling(child);
  }
  CHECK_EQ(child, kNoNode);
}

TEST(children_of_merged_variants_are_merged_too) {
  CallPathTree tree;
  NodeIndex first = sample::kernel(tree, kRootNode, "add", 1, 10);
  NodeIndex second = sample::kernel(tree, kRootNode, "add", 2, 20);
  NodeIndex line = tree.child(first, Name("a.py:1@f"), FrameKind::kLine);
  NodeIndex same_line = tree.child(second, Name("a.py:1@f"), FrameKind::kLine);
  NodeIndex other_line = tree.child(second, Name("a.py:2@f"), FrameKind::kLine);
  MergedTree merged(tree, 480);
  CHECK_EQ(merged.first_child(first), line);
  CHECK_EQ(merged.next_member(line), same_line);
  CHECK_EQ(merged.next_sibling(line), other_line);
  CHECK_EQ(merged.parent(other_line), first);
}

TEST(levels_below_the_limit_join_their_ancestor_at_it) {
  CallPathTree tree;
  NodeIndex at_limit = sample::chain(tree, 3);
  NodeIndex below = sample::scope(tree, at_limit, "below");
  NodeIndex deeper = sample::scope(tree, below, "deeper");
  MergedTree merged(tree, 3);
  CHECK(merged.is_folded());
  CHECK_EQ(merged.first_child(at_limit), kNoNode);
  CHECK_EQ(merged.next_member(at_limit), below);
  CHECK_EQ(merged.next_member(below), deeper);
}

TEST(a_tree_as_deep_as_the_limit_is_not_folded) {
  CallPathTree tree;
  sample::chain(tree, 3);
  CHECK(!MergedTree(tree, 3).is_folded());
}
