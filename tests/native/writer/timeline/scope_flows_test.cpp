#include "writer/timeline/scope_flows.h"

#include "check.h"

using namespace proton;

namespace {

constexpr int64_t kThread = 0;
constexpr int64_t kStream = 200007;

} // namespace

TEST(an_arrow_leaves_the_innermost_scope_around_the_call) {
  ScopeFlows flows;
  flows.add_launch(1, kThread, 150);
  flows.add_launch(2, kThread, 250);
  flows.add_scope(7, 0, kThread, 100, 300); // the outer one comes first, as rows are written
  flows.add_scope(8, 0, kThread, 120, 200);
  flows.add_work(1, kStream, 1000, false);
  flows.add_work(2, kStream, 1100, false);

  std::vector<ScopeFlows::Arrow> arrows = flows.settle();

  CHECK_EQ(arrows.size(), size_t{2});
  CHECK_EQ(arrows[0].scope, uint64_t{8});
  CHECK_EQ(arrows[0].from_ns, int64_t{120});
  CHECK_EQ(arrows[0].to_ns, int64_t{1000});
  CHECK_EQ(arrows[1].scope, uint64_t{7});
  CHECK_EQ(arrows[1].to_row, kStream);
}

TEST(parts_may_come_late) {
  ScopeFlows flows;
  flows.add_launch(1, kThread, 150);
  flows.add_work(1, kStream, 1000, false);
  CHECK(flows.settle().empty());
  flows.add_launch(2, kThread, 160);
  flows.add_scope(3, 0, kThread, 100, 300);
  CHECK_EQ(flows.settle().size(), size_t{1});
  flows.add_work(2, kStream, 2000, false);
  CHECK_EQ(flows.settle().size(), size_t{1});
}

TEST(a_launch_outside_of_scopes_or_on_another_thread_has_no_arrow) {
  ScopeFlows flows;
  flows.add_launch(1, kThread, 50);
  flows.add_launch(2, kThread + 1, 150);
  flows.add_scope(3, 0, kThread, 100, 300);
  flows.add_work(1, kStream, 1000, false);
  flows.add_work(2, kStream, 1100, false);

  CHECK(flows.settle().empty());
}

TEST(nodes_of_a_graph_that_follow_one_another_share_an_arrow) {
  ScopeFlows flows;
  flows.add_launch(1, kThread, 150);
  flows.add_launch(2, kThread, 160);
  flows.add_scope(3, 0, kThread, 100, 300);
  for (int64_t at_ns : {1000, 1100})
    flows.add_work(1, kStream, at_ns, true);
  flows.add_work(1, kStream + 1, 1050, true);
  flows.add_work(2, kStream, 1200, false);

  std::vector<ScopeFlows::Arrow> arrows = flows.settle();

  CHECK_EQ(arrows.size(), size_t{3}); // one for each stream, and that of the kernel
  CHECK_EQ(arrows[2].to_ns, int64_t{1200});
}
