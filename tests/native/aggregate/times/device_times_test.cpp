#include "aggregate/times/device_times.h"

#include "check.h"

using namespace proton;

namespace {

struct Recorded {
  PauseList pauses;
  DeviceTimes times{pauses};
  CallPathTree tree;

  // A leaf below a top-level scope, or right below the root without one.
  NodeIndex node(const char *scope, const char *name, int32_t device = 0) {
    NodeIndex above = kRootNode;
    if (scope) {
      above = tree.child(kRootNode, Name(scope), FrameKind::kScope);
      above = tree.child(above, Name("inner"), FrameKind::kScope);
    }
    return tree.child(above, Name(name), FrameKind::kKernel, device);
  }
  void kernel(const char *scope, const char *name, int64_t start_ns, int64_t end_ns,
              int64_t called_ns = 0, int32_t device = 0) {
    DeviceTimes::Leaf &leaf = times.leaf(tree, node(scope, name, device), "CUDA", name);
    times.add(leaf, start_ns, end_ns, called_ns);
  }
  const std::vector<DeviceUse> &uses() {
    times.publish(tree);
    return tree.device_use();
  }
  // Of a scope by name, of everything by "".
  DeviceUse use(const std::string &scope, int32_t device = 0) {
    for (const DeviceUse &use : uses()) {
      bool is_whole = use.node == kRootNode && scope.empty();
      if (use.device == device && (is_whole || tree.nodes()[use.node].name.text() == scope))
        return use;
    }
    return {};
  }
  int64_t value(const char *metric, NodeIndex at) {
    times.publish(tree);
    for (const MetricColumn &column : tree.metrics().columns())
      if (column.name == metric && column.has(at))
        return column.ints[at];
    return -1;
  }
};

} // namespace

TEST(work_that_overlaps_is_busy_once) {
  Recorded run;
  run.kernel("a", "k1", 100, 200);
  run.kernel("b", "k2", 150, 300);
  CHECK_EQ(run.use("").busy_ns, 200);
  CHECK_EQ(run.use("a").busy_ns, 100);
  CHECK_EQ(run.use("b").busy_ns, 150);
  CHECK_EQ(run.use("").idle.all_ns, 0);
}

TEST(a_gap_belongs_to_the_scope_whose_work_ends_it) {
  Recorded run;
  run.kernel("forward", "k", 100, 200);
  run.kernel("backward", "k", 230, 300);
  run.kernel("forward", "k", 350, 400);
  run.kernel(nullptr, "k", 407, 410);
  CHECK_EQ(run.use("backward").idle.all_ns, 30);
  CHECK_EQ(run.use("forward").idle.all_ns, 50);
  CHECK_EQ(run.use("").idle.all_ns, 87);
}

TEST(long_gaps_are_told_from_short_ones) {
  constexpr int64_t kLongNs = IdleTime::kLongNs;
  // More work than stays open, so that some of its gaps are closed and others are not.
  constexpr int64_t kCount = 3 * 32768, kOften = 100;
  Recorded run;
  int64_t now_ns = 100, long_gaps = 0;
  run.kernel("step", "k", now_ns, now_ns + 10, now_ns - kLongNs);
  for (int64_t i = 1; i < kCount; ++i) {
    const bool is_long = i % kOften == 0;
    now_ns += 10 + (is_long ? kLongNs : kLongNs - 1);
    long_gaps += is_long ? 1 : 0;
    run.kernel("step", "k", now_ns, now_ns + 10);
  }
  for (const char *scope : {"", "step"}) {
    CHECK_EQ(run.use(scope).idle.all_ns, kCount * (kLongNs - 1) + long_gaps + 1);
    CHECK_EQ(run.use(scope).idle.long_ns, (long_gaps + 1) * kLongNs);
  }
}

TEST(a_pause_of_the_session_makes_no_gap_long) {
  Recorded run;
  run.kernel("a", "k", 100, 200);
  run.pauses.pause(210);
  run.pauses.resume(200 + IdleTime::kLongNs);
  run.kernel("a", "k", 220 + IdleTime::kLongNs, 230 + IdleTime::kLongNs);
  CHECK_EQ(run.use("").idle.all_ns, 30);
  CHECK_EQ(run.use("").idle.long_ns, 0);
}

TEST(buffers_of_threads_that_come_one_after_the_other_are_placed) {
  // The launches of two threads alternate in runs of 100, and each thread fills its own buffers.
  constexpr int64_t kRuns = 400, kLaunches = 100, kPeriodNs = 10, kBuffer = 50;
  Recorded run;
  auto buffer = [&](int64_t first_run, int64_t parity) {
    for (int64_t one = first_run + parity; one < first_run + kBuffer; one += 2)
      for (int64_t i = 0; i < kLaunches; ++i) {
        int64_t start_ns = (one * kLaunches + i) * kPeriodNs;
        run.kernel("step", "k", start_ns, start_ns + 4);
      }
  };
  for (int64_t first = 0; first < kRuns; first += kBuffer) {
    buffer(first, 0);
    buffer(first, 1);
  }
  for (const char *scope : {"", "step"}) {
    CHECK_EQ(run.use(scope).busy_ns, kRuns * kLaunches * 4);
    CHECK_EQ(run.use(scope).uncertain_ns, 0);
  }
  CHECK_EQ(run.use("").idle.all_ns, (kRuns * kLaunches - 1) * 6);
}

TEST(the_first_launch_begins_the_window) {
  Recorded run;
  run.kernel("a", "k", 100, 200, 60);
  CHECK_EQ(run.use("").idle.all_ns, 40);
  CHECK_EQ(run.use("a").idle.all_ns, 40);
}

TEST(pauses_of_the_session_are_no_idle_time) {
  Recorded run;
  run.kernel("a", "k", 100, 200);
  run.pauses.pause(210);
  run.pauses.resume(280);
  run.kernel("a", "k", 300, 400);
  CHECK_EQ(run.use("").idle.all_ns, 30);
}

TEST(devices_have_times_of_their_own) {
  Recorded run;
  run.kernel("a", "k", 100, 200, 0, 0);
  run.kernel("a", "k", 100, 150, 0, 1);
  CHECK_EQ(run.uses().size(), 4);
  CHECK_EQ(run.use("", 0).busy_ns, 100);
  CHECK_EQ(run.use("a", 1).busy_ns, 50);
}

TEST(time_in_which_only_nccl_runs_is_waiting) {
  Recorded run;
  run.kernel("a", "gemm", 0, 100);
  run.kernel("a", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)", 50, 300);
  run.kernel("a", "gemm", 250, 260);
  run.kernel("b", "_Z17ncclKernel_AllReduce4args", 400, 410);
  CHECK_EQ(run.use("").busy_ns, 310);
  CHECK_EQ(run.use("").waiting_ns, 200);
  CHECK_EQ(run.use("a").waiting_ns, 190);
  CHECK_EQ(run.use("b").waiting_ns, 10);
  CHECK_EQ(run.value("waiting_kernel", run.node("b", "_Z17ncclKernel_AllReduce4args")), 1);
  CHECK_EQ(run.value("waiting_kernel", run.node("a", "gemm")), -1);
}

TEST(latency_is_from_call_to_start) {
  Recorded run;
  run.kernel("a", "k", 1000, 1010, 400);
  run.kernel("a", "k", 2000, 2010, 1800);
  run.kernel("b", "k", 3000, 3010, 3500); // clocks that disagree
  LaunchLatency all = run.use("").latency, of_a = run.use("a").latency;
  CHECK_EQ(all.count, 2);
  CHECK_EQ(all.clamped, 1);
  CHECK_EQ(all.sum_ns, 800);
  CHECK_EQ(all.min_ns, 200);
  CHECK_EQ(of_a.min_ns, 200);
  CHECK_EQ(of_a.max_ns, 600);
  CHECK_EQ(run.value("launch_latency_sum (ns)", run.node("a", "k")), 800);
  CHECK_EQ(run.value("launch_latency_count", run.node("a", "k")), 2);
}

TEST(publishing_twice_changes_nothing) {
  Recorded run;
  run.kernel("a", "k", 1000, 1010, 400);
  run.times.publish(run.tree);
  CHECK_EQ(run.use("a").busy_ns, 10);
  CHECK_EQ(run.value("launch_latency_sum (ns)", run.node("a", "k")), 600);
}

TEST(copies_are_busy_and_have_no_latency) {
  Recorded run;
  NodeIndex node = run.tree.child(kRootNode, Name("<memcpy H2D>"), FrameKind::kCopy, 0);
  run.times.add(run.times.leaf(run.tree, node, "CUDA", nullptr), 100, 200, 50);
  CHECK_EQ(run.use("").busy_ns, 100);
  CHECK_EQ(run.use("").idle.all_ns, 50);
  CHECK_EQ(run.use("").latency.count, 0);
}

TEST(work_of_the_host_is_no_device_time) {
  Recorded run;
  run.times.add(run.times.leaf(run.tree, run.node("a", "k"), "CPU", "k"), 100, 200, 50);
  CHECK_EQ(run.uses().size(), 0);
}

TEST(times_that_cannot_be_are_left_out) {
  Recorded run;
  run.kernel("a", "k", INT64_MIN, INT64_MIN + 5);
  run.kernel("a", "k", INT64_MAX - 5, INT64_MAX);
  run.kernel("a", "k", 200, 100);
  CHECK_EQ(run.uses().size(), 0);
  run.kernel("a", "k", 0, 5, INT64_MIN + 10);
  CHECK_EQ(run.use("").busy_ns, 5);
}

TEST(a_metric_of_the_user_keeps_its_name) {
  Recorded run;
  run.tree.metrics().add(kRootNode, "launch_latency_count", Aggregation::kInclusive, 2.5);
  run.kernel("a", "k", 1000, 1010, 400);
  CHECK_EQ(run.use("").busy_ns, 10);
  for (const MetricColumn &column : run.tree.metrics().columns())
    if (column.name == "launch_latency_count")
      CHECK_EQ(column.doubles[kRootNode], 2.5);
}

TEST(very_many_scopes_take_bounded_memory) {
  Recorded run;
  constexpr int64_t kScopes = 20'000;
  for (int64_t i = 0; i < kScopes; ++i)
    run.kernel(("step " + std::to_string(i)).c_str(), "k", 100 * i, 100 * i + 10, 0);
  CHECK(run.uses().size() < 5000);
  CHECK_EQ(run.use("").busy_ns, 10 * kScopes);
  CHECK_EQ(run.use("").idle.all_ns, 90 * (kScopes - 1));
}
