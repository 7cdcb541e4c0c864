#include "collector/hip/graph_replays.h"

#include "check.h"
#include "collector/hip/hip_records.h"

using namespace proton;

namespace {

constexpr uint64_t kLaunch = 40;

uint64_t key(const char *name, uint32_t blocks = 1) {
  return kernel_key(name, {64 * blocks, 1, 1}, {64, 1, 1});
}

std::shared_ptr<GraphPlan> plan_of(const std::vector<uint64_t> &keys) {
  auto plan = std::make_shared<GraphPlan>();
  for (size_t i = 0; i < keys.size(); ++i)
    plan->kernels.push_back({100 + i, keys[i]});
  return plan;
}

/// Nodes, less 100, of dispatches with these keys and ordinals.
std::string match(GraphReplays &replays, std::vector<Dispatch> dispatches,
                  uint64_t launch = kLaunch) {
  replays.match(launch, dispatches);
  std::string text;
  for (const Dispatch &each : dispatches)
    text += each.node >= GraphReplays::kUnknownNode ? "? " : std::to_string(each.node - 100) + " ";
  return text;
}

} // namespace

TEST(a_key_holds_name_and_shape_without_the_suffix_of_descriptors) {
  CHECK_EQ(key("k"), key("k.kd"));
  CHECK(key("k") != key("k", 2));
  CHECK_EQ(name_of_key(key("k")), name_of_key(key("k", 2)));
  CHECK(name_of_key(key("k")) != name_of_key(key("l")));
  CHECK_EQ(kernel_key(nullptr, {1, 1, 1}, {1, 1, 1}), 0);
}

TEST(equal_kernels_are_taken_in_the_order_of_dispatch) {
  GraphReplays replays;
  replays.begin(kLaunch, plan_of({key("k"), key("l"), key("k")}), 3);
  CHECK_EQ(match(replays, {{key("k"), 0, true}, {key("k"), 1, true}, {key("l"), 2, true}}),
           "0 2 1 ");
  CHECK(!replays.has_any()); // all are here
}

TEST(a_changed_shape_is_found_by_its_name_and_an_unknown_kernel_not_at_all) {
  GraphReplays replays;
  replays.begin(kLaunch, plan_of({key("k"), key("l")}), 3);
  CHECK_EQ(match(replays, {{key("l", 5)}, {key("m")}, {key("k")}}), "1 ? 0 ");
}

TEST(a_kernel_whose_call_did_not_name_it_takes_what_is_left) {
  GraphReplays replays;
  replays.begin(kLaunch, plan_of({key("k"), 0}), 3);
  CHECK_EQ(match(replays, {{key("m")}, {key("k")}}), "1 0 ");
}

TEST(the_order_that_one_launch_showed_serves_those_that_come_in_pieces) {
  GraphReplays replays;
  auto plan = plan_of({key("k"), key("k"), key("l")});
  replays.begin(kLaunch, plan, 3);
  match(replays, {{key("k"), 0, true}, {key("l"), 1, true}, {key("k"), 2, true}});
  replays.begin(kLaunch + 1, plan, 3);
  CHECK_EQ(match(replays, {{key("k"), 2, true}}, kLaunch + 1), "1 "); // its buffer came first
  CHECK_EQ(match(replays, {{key("k"), 0, true}, {key("l"), 1, true}}, kLaunch + 1), "0 2 ");
}

TEST(launches_that_a_flush_waited_for_are_forgotten) {
  GraphReplays replays;
  replays.begin(kLaunch, plan_of({key("k")}), 3);
  replays.begin(kLaunch + 1, nullptr, 3);
  replays.end_up_to(kLaunch);
  CHECK(!replays.has(kLaunch));
  CHECK(replays.has(kLaunch + 1));
  CHECK_EQ(match(replays, {{key("k")}}, kLaunch + 1), "? ");
  replays.end(kLaunch + 1);
  CHECK(!replays.has_any());
}

TEST(a_launch_tells_its_stream) {
  GraphReplays replays;
  replays.begin(kLaunch, plan_of({key("k"), key("k")}), 3);
  std::vector<Dispatch> one = {{key("k")}};
  CHECK_EQ(replays.match(kLaunch, one), 3);
}

TEST(launches_whose_kernels_never_run_do_not_pile_up) {
  GraphReplays replays;
  auto plan = plan_of({key("k"), key("disabled")});
  constexpr uint64_t kLaunches = 200'000;
  for (uint64_t launch = 1; launch <= kLaunches; ++launch) {
    replays.begin(launch, plan, 3);
    match(replays, {{key("k"), 0, true}}, launch);
  }
  CHECK(!replays.has(1));
  CHECK(replays.has(kLaunches)); // its records may still come
  CHECK(replays.has(kLaunches - 20'000));
}
