#include "aggregate/tree/op_work.h"

#include <string>

#include "check.h"

using namespace proton;

namespace {

int64_t value(const CallPathTree &tree, NodeIndex node, std::string_view name) {
  for (const MetricColumn &column : tree.metrics().columns())
    if (column.name == name && column.has(node))
      return column.holds(node) == MetricColumn::Held::kInt
                 ? column.ints[node]
                 : static_cast<int64_t>(column.doubles[node]);
  return -1;
}

const MetricName &flops16() { return MetricName::of("flops16", Aggregation::kInclusive); }

struct Tree {
  CallPathTree tree;
  NodeIndex op = tree.child(tree.child(kRootNode, Name("forward"), FrameKind::kScope),
                            Name("aten::mm"), FrameKind::kOp);
  NodeIndex kernel = kNoNode;
  OpWork work;
};

} // namespace

TEST(work_is_written_once_it_is_known) {
  Tree at;
  at.work.add(at.op, 1000);
  at.work.add(at.op, 1000);
  at.work.publish(at.tree);
  CHECK_EQ(value(at.tree, at.op, "flops16"), -1);
  set_work_value(1000, {&flops16(), 50});
  at.work.publish(at.tree);
  at.work.publish(at.tree);
  CHECK_EQ(value(at.tree, at.op, "flops16"), 100);
  at.work.add(at.op, 1000);
  at.work.publish(at.tree);
  CHECK_EQ(value(at.tree, at.op, "flops16"), 150);
}

TEST(work_of_an_operator_with_one_kernel_is_that_of_the_kernel) {
  Tree at;
  set_work_value(1005, {&flops16(), 50});
  at.work.add(at.op, 1005);
  at.kernel = at.tree.child(at.op, Name("gemm"), FrameKind::kKernel);
  at.work.publish(at.tree);
  CHECK_EQ(value(at.tree, at.kernel, "flops16"), 50);
  CHECK_EQ(value(at.tree, at.op, "flops16"), -1);
  at.tree.child(at.op, Name("reduce"), FrameKind::kKernel); // which of them did how much is unknown
  at.work.publish(at.tree);
  CHECK_EQ(value(at.tree, at.kernel, "flops16"), 0);
  CHECK_EQ(value(at.tree, at.op, "flops16"), 50);
}

TEST(work_of_a_scope_stays_there) {
  Tree at;
  NodeIndex scope = at.tree.nodes()[at.op].parent;
  set_work_value(1006, {&flops16(), 50});
  at.kernel = at.tree.child(scope, Name("gemm"), FrameKind::kKernel);
  at.work.add(scope, 1006);
  at.work.publish(at.tree);
  CHECK_EQ(value(at.tree, scope, "flops16"), 50);
}

TEST(work_without_a_formula_is_none) {
  Tree at;
  set_work_value(1001, {});
  at.work.add(at.op, 1001);
  at.work.publish(at.tree);
  CHECK(at.tree.metrics().columns().empty());
}

TEST(flops_that_the_program_gave_a_kernel_count_instead) {
  Tree at;
  set_work_value(1002, {&flops16(), 50});
  at.work.add(at.op, 1002);
  at.work.publish(at.tree);
  CHECK_EQ(value(at.tree, at.op, "flops16"), 50);
  at.kernel = at.tree.child(at.op, Name("gemm"), FrameKind::kKernel);
  at.tree.metrics().add(at.kernel, "flops", Aggregation::kInclusive, int64_t{60}); // came later
  at.work.publish(at.tree);
  CHECK_EQ(value(at.tree, at.op, "flops16"), 0);
  CHECK_EQ(value(at.tree, at.op, "derived_flops"), 50);
  CHECK_EQ(value(at.tree, at.kernel, "flops"), 60);
}

TEST(flops_that_the_program_gave_a_scope_count_for_all_inside) {
  Tree at;
  set_work_value(1003, {&flops16(), 50});
  at.tree.metrics().add(at.tree.nodes()[at.op].parent, "flops32", Aggregation::kInclusive, 1e9);
  at.work.add(at.op, 1003);
  at.work.publish(at.tree);
  CHECK_EQ(value(at.tree, at.op, "flops16"), -1);
  CHECK_EQ(value(at.tree, at.op, "derived_flops"), 50);
}

TEST(work_inside_of_other_work_counts_too) {
  Tree at;
  set_work_value(1004, {&flops16(), 50});
  at.work.add(at.tree.nodes()[at.op].parent, 1004);
  at.work.add(at.op, 1004);
  at.work.publish(at.tree);
  at.work.publish(at.tree);
  CHECK_EQ(value(at.tree, at.op, "flops16"), 50);
  CHECK_EQ(value(at.tree, at.tree.nodes()[at.op].parent, "flops16"), 50);
}
