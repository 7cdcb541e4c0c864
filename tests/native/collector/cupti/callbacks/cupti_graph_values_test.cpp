// Values that graphs leave in host memory, on the double.
#include <atomic>
#include <memory>
#include <vector>

#include "aggregate/consumer/given_values.h"
#include "check.h"
#include "collector/cupti/callbacks/cupti_graph_launches.h"
#include "support/error.h"

using namespace proton;

namespace {

/// A graph of a kernel in a scope that leaves a value on each launch.
struct LeavingGraph {
  LeavingGraph() {
    auto ring = std::make_shared<DeviceValues>(words.data(), 1, false, false);
    fake_cupti_capture_begin(7);
    {
      ScopeGuard guard("capture");
      fake_cupti_launch("a", 7);
      give_values_or_capture(capture_current(), {{MetricName::of("flops", Aggregation::kInclusive),
                                                  MetricValue(), ring}});
    }
    executable = fake_cupti_graph_instantiate(fake_cupti_capture_end(7));
  }
  void launch(const char *scope, uint64_t value) {
    const uint64_t capacity = DeviceValues::capacity_of(1);
    const uint64_t count = words[0];
    const uint64_t taken = std::atomic_ref(words[1]).load(std::memory_order_acquire);
    if (count - taken < capacity) { // else it is left out
      const uint64_t entry = count % capacity;
      words[2 + entry * 2] = count + 1;
      words[3 + entry * 2] = value;
    }
    std::atomic_ref(words[0]).store(count + 1,
                                    std::memory_order_release); // readers are other threads
    proton::launch(scope, executable);
  }

  std::vector<uint64_t> words = std::vector<uint64_t>(DeviceValues::bytes(1) / 8, 0);
  uint32_t executable = 0;
};

} // namespace

TEST(what_a_graph_leaves_is_added_where_it_was_launched) {
  CuptiSession session;
  LeavingGraph graph;
  graph.launch("first", 1);
  graph.launch("second", 10);
  graph.launch("first", 100);
  session.stop();
  CHECK_EQ(session.tree("flops"),
           "first/<captured_at>/capture=101 second/<captured_at>/capture=10 ");
  CHECK_EQ(session.losses(), "");
}

TEST(launches_without_a_pause_lose_no_value) {
  CuptiSession session;
  LeavingGraph graph;
  for (uint32_t i = 0; i < 5 * DeviceValues::capacity_of(1); ++i)
    graph.launch("replay", 1);
  session.stop();
  CHECK_EQ(session.tree("flops"), "replay/<captured_at>/capture=" +
                                      std::to_string(5 * DeviceValues::capacity_of(1)) + " ");
  CHECK_EQ(session.losses(), "");
}

TEST(values_that_a_graph_leaves_without_a_session_are_dropped) {
  CuptiSession session;
  LeavingGraph graph;
  graph.launch("before", 1);
  session.core->deactivate();
  graph.launch("deaf", 10);
  session.core->activate();
  graph.launch("after", 100);
  session.core->deactivate();
  session.collector.stop();
  graph.launch("stopped", 1000);
  session.collector.start();
  session.core->activate();
  graph.launch("again", 10000);
  session.stop();
  CHECK_EQ(session.tree("flops"), "before/<captured_at>/capture=1 after/<captured_at>/capture=100 "
                                  "again/<captured_at>/capture=10000 ");
  CHECK_EQ(session.losses(), "");
}

TEST(a_value_that_did_not_come_is_counted) {
  CuptiSession session;
  LeavingGraph graph;
  launch("replay", graph.executable);
  session.stop();
  CHECK_EQ(session.tree("flops"), "");
  CHECK_EQ(session.losses(), "value that a graph left on its device=1 ");
}

TEST(values_of_devices_belong_to_captures) {
  CuptiSession session;
  auto ring = std::make_shared<DeviceValues>(nullptr, 1, false, false);
  UserMetric left{MetricName::of("flops", Aggregation::kInclusive), MetricValue(), ring};
  CHECK_THROWS(give_values_or_capture(capture_current(), {left}), Error);
}
