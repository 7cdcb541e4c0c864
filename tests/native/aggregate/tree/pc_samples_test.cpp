// Samples in the trees of sessions: whatever the call paths and times, they add up.
#include <map>
#include <random>
#include <string>

#include "aggregate/kernels/kernel_parts.h"
#include "aggregate/tree/session_tree.h"
#include "calltree/context_tree.h"
#include "check.h"

using namespace proton;

namespace {

int64_t sum(const CallPathTree &tree, const std::string &name, NodeIndex below = kRootNode) {
  int64_t all = 0;
  for (const MetricColumn &column : tree.metrics().columns())
    for (NodeIndex node = 0; column.name == name && node < column.ints.size(); ++node)
      for (NodeIndex up = node; up != kNoNode; up = tree.nodes()[up].parent)
        all += up == below ? column.ints[node] : 0;
  return all;
}

/// A session, and all kernels that ran.
struct Run {
  Run() {
    times.start();
    session.begin_samples();
  }
  void launch(const std::string &scope, const char *kernel, int64_t duration_ns,
              const VariantRecord *variant = nullptr) {
    ContextId at = ContextTree::instance().child(0, scope, FrameKind::kScope, 1, 1);
    LaunchRecord launch;
    launch.at = {at, 0, 1};
    KernelRecord record;
    record.name = kernel;
    record.variant = variant;
    record.end_ns = duration_ns;
    session.add_kernel(0, launch, record);
    times.add(record);
  }
  void sample(const char *kernel, const char *raw_name, uint64_t samples, uint64_t not_issued) {
    StallCount stall{"stalled_wait", "not_issued_wait", samples, not_issued};
    PcLine lines[] = {{"a.py:1@k", {&stall, 1}}, {nullptr, {&stall, 1}}};
    PcSampleRecord record;
    record.kernel = kernel;
    record.raw_name = raw_name;
    record.lines = lines;
    session.add_samples(0, {&record, 1}, times);
  }
  const CallPathTree &tree() { return *session.find(0); }

  SessionTree session{ContextSource::kShadow, 1, false};
  KernelTimes times;
};

} // namespace

TEST(sums_are_exact_for_any_times_and_paths) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 60; ++round) {
    Run run;
    int64_t samples = 0, not_issued = 0;
    for (int window = 0; window < 4; ++window) {
      size_t launches = random() % 40;
      for (size_t i = 0; i < launches; ++i)
        run.launch("s" + std::to_string(random() % 12), random() % 2 != 0 ? "one" : "two",
                   static_cast<int64_t>(random() % 100'000));
      for (const char *kernel : {"one", "two", "never launched"}) {
        uint64_t count = random() % 10'000;
        run.sample(kernel, kernel, count, count / 3);
        samples += 2 * static_cast<int64_t>(count); // two lines
        not_issued += 2 * static_cast<int64_t>(count / 3);
      }
      run.session.begin_samples();
      run.times.begin_window();
    }
    CHECK_EQ(sum(run.tree(), "num_stalled_samples"), samples);
    CHECK_EQ(sum(run.tree(), "stalled_wait"), samples);
    CHECK_EQ(sum(run.tree(), "num_not_issued_samples"), not_issued);
    CHECK_EQ(sum(run.tree(), "num_samples"), samples + not_issued);
  }
}

TEST(what_was_not_issued_stays_a_part_of_the_samples_of_every_node) {
  std::mt19937_64 random(12);
  for (int round = 0; round < 200; ++round) {
    Run run;
    for (int scope = 0; scope < 7; ++scope)
      run.launch("s" + std::to_string(scope), "k", 1 + static_cast<int64_t>(random() % 1000));
    for (int time = 0; time < 5; ++time) {
      uint64_t count = random() % 12;
      run.sample("k", "k", count, random() % (count + 1));
    }
    const CallPathTree &tree = run.tree();
    for (NodeIndex node = 0; node < tree.nodes().size(); ++node)
      CHECK(sum(tree, "not_issued_wait", node) <= sum(tree, "stalled_wait", node));
  }
}

TEST(samples_are_found_by_the_name_that_tools_know) {
  Run run;
  VariantRecord variant;
  variant.raw_name = "_Z3addPf";
  run.launch("s", "add(float*)", 10, &variant);
  run.sample("add(float*)", "_Z3addPf", 6, 0);
  const CallPathTree &tree = run.tree();
  CHECK_EQ(tree.nodes().size(), 4); // root, scope, kernel, line
  CHECK(tree.nodes()[3].kind == FrameKind::kLine);
  CHECK_EQ(tree.nodes()[3].name.text(), "a.py:1@k");
  CHECK_EQ(sum(tree, "num_samples", 3), 6);
  CHECK_EQ(sum(tree, "num_samples", 2), 12);
}

TEST(samples_that_come_late_are_split_by_all_that_ran) {
  Run run;
  run.launch("short", "k", 100);
  run.launch("long", "k", 300);
  run.session.begin_samples();
  run.times.begin_window();
  run.sample("k", "k", 400, 0);
  CHECK_EQ(sum(run.tree(), "num_samples", 2), 200);
  CHECK_EQ(sum(run.tree(), "num_samples", 4), 600);
}

TEST(what_ran_for_others_has_its_part) {
  Run run;
  run.launch("s", "k", 100);
  KernelRecord others;
  others.name = "k";
  others.end_ns = 300;
  run.times.add(others);
  run.sample("k", "k", 400, 0);
  CHECK_EQ(sum(run.tree(), "num_samples"), 200);
}

TEST(kernels_are_timed_by_name_while_somebody_asks) {
  KernelTimes times;
  KernelRecord record;
  record.name = "k";
  record.identity = 3;
  record.end_ns = 5;
  times.add(record);
  CHECK_EQ(times.find("k").ever_ns, 0);
  times.start();
  times.add(record);
  times.begin_window();
  times.add(record);
  CHECK_EQ(times.find("k").ever_ns, 10);
  CHECK_EQ(times.find("k").window_ns, 5);
  record.end_ns = -1;
  times.add(record);
  CHECK_EQ(times.find("k").ever_ns, 10);
}
