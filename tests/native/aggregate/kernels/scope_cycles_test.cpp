#include "aggregate/kernels/kernel_parts.h"

#include <map>

#include "aggregate/tree/session_tree.h"
#include "calltree/context_tree.h"
#include "check.h"

using namespace proton;

namespace {

// A kernel with scopes outer > inner, launched at the root.
struct Sample {
  const CycleScope scopes[2] = {{"outer", kNoScope}, {"inner", 0}};
  KernelTotals totals{};
  ScopeTotals sums[2] = {};
  CycleRecord record;

  Sample() {
    totals.launches = 1;
    totals.programs = 4;
    totals.records = 8;
    for (ScopeTotals &sum : sums)
      sum.min_cycles = ~uint64_t{0};
    record.at = {0, 0, 1};
    record.kernel = "add";
    record.warps = 2;
    record.scopes = scopes;
    record.totals = &totals;
    record.scope_totals = sums;
  }

  void pass(int scope, uint64_t cycles) {
    ScopeTotals &sum = sums[scope];
    ++sum.count;
    sum.cycles += cycles;
    sum.min_cycles = std::min(sum.min_cycles, cycles);
    sum.max_cycles = std::max(sum.max_cycles, cycles);
    ++sum.buckets[cycle_bucket(cycles)];
  }
};

const MetricColumn &column(const CallPathTree &tree, const std::string &name) {
  static const MetricColumn none;
  for (const MetricColumn &each : tree.metrics().columns())
    if (each.name == name)
      return each;
  return none;
}

int64_t value(const CallPathTree &tree, const std::string &name, NodeIndex node) {
  const MetricColumn &found = column(tree, name);
  return found.has(node) ? found.ints[node] : -1;
}

std::string path(const CallPathTree &tree, NodeIndex node) {
  std::string text;
  for (; node != kRootNode; node = tree.nodes()[node].parent)
    text = "/" + std::string(tree.nodes()[node].name.text()) + text;
  return text;
}

} // namespace

TEST(scopes_stand_below_their_kernel_along_their_parents) {
  Sample sample;
  sample.pass(1, 30); // of the outer one nothing was kept
  SessionTree session(ContextSource::kShadow, 1, false);
  session.add_cycles(0, sample.record);
  const CallPathTree &tree = *session.find(0);
  CHECK_EQ(tree.nodes().size(), 4);
  CHECK_EQ(path(tree, 3), "/add/outer/inner");
  CHECK(tree.nodes()[3].kind == FrameKind::kScope);
  CHECK(tree.nodes()[1].kind == FrameKind::kKernel);
  CHECK_EQ(value(tree, "cycles", 3), 30);
  CHECK_EQ(value(tree, "instances", 3), 1);
  CHECK(!column(tree, "cycles").has(2));
}

TEST(a_kernel_with_times_and_scopes_is_one_leaf) {
  SessionTree session(ContextSource::kShadow, 1, false);
  Sample sample;
  sample.pass(0, 1);
  VariantRecord variant;
  variant.code_hash = 7;
  KernelRecord kernel;
  kernel.name = "add";
  kernel.end_ns = 10;
  kernel.variant = &variant;
  LaunchRecord launch;
  launch.at = {0, 0, 1};
  session.add_cycles(0, sample.record);
  session.add_kernel(0, launch, kernel);
  session.add_cycles(0, sample.record);
  CHECK_EQ(session.find(0)->nodes().size(), 3);
  CHECK_EQ(value(*session.find(0), "time (ns)", 1), 10);
  CHECK_EQ(value(*session.find(0), "count", 1), 1);
  CHECK_EQ(value(*session.find(0), "instrumented_launches", 1), 2);
}

TEST(normalized_cycles_are_of_one_warp_that_recorded_in_one_program_that_ran) {
  Sample sample;
  sample.totals.skipped_programs = 60;
  for (int i = 0; i < 8; ++i)
    sample.pass(0, 100);
  SessionTree session(ContextSource::kShadow, 1, false);
  session.add_cycles(0, sample.record);
  CHECK_EQ(column(*session.find(0), "normalized_cycles").doubles[2], 100.0);
  session.add_cycles(0, sample.record); // as cycles, they grow with launches
  CHECK_EQ(column(*session.find(0), "normalized_cycles").doubles[2], 200.0);
  CHECK(column(*session.find(0), "cycles").aggregation == Aggregation::kExclusive);
}

TEST(the_distribution_has_exact_moments_and_near_quantiles) {
  Sample sample;
  for (uint64_t cycles = 0; cycles < 1000; ++cycles)
    sample.pass(0, cycles);
  SessionTree session(ContextSource::kShadow, 1, false);
  session.add_cycles(0, sample.record);
  const Distribution &found = column(*session.find(0), "cycles").distributions.at(2);
  CHECK_EQ(found.n, 1000);
  CHECK_EQ(found.zero_count, 1);
  CHECK_EQ(found.sum, 499500.0);
  CHECK_EQ(found.min, 0.0);
  CHECK_EQ(found.max, 999.0);
  CHECK(found.sketch != nullptr);
  uint64_t in_sketch = 0;
  for (const Sketch::Bucket &bucket : found.sketch->buckets())
    in_sketch += bucket.count;
  CHECK_EQ(in_sketch, 999);
}

TEST(losses_are_told_of_the_kernel) {
  Sample sample;
  sample.totals.lost_records = 12;
  sample.totals.lossy_warps = 3;
  sample.totals.lossy_programs = 2;
  sample.totals.corrupt_programs = 1;
  SessionTree session(ContextSource::kShadow, 1, false);
  session.add_cycles(0, sample.record);
  const CallPathTree &tree = *session.find(0);
  CHECK_EQ(value(tree, "kept_records", 1), 8);
  CHECK_EQ(value(tree, "lost_records", 1), 12);
  CHECK_EQ(value(tree, "lossy_warps", 1), 3);
  CHECK_EQ(value(tree, "lossy_programs", 1), 2);
  CHECK_EQ(value(tree, "skipped_programs", 1), -1);
  CHECK(column(tree, "lost_records").is_own);
  std::map<std::string, uint64_t> lost;
  count_losses(sample.totals, [&](const char *reason, uint64_t count) { lost[reason] += count; });
  CHECK_EQ(lost.size(), 2);
  CHECK_EQ(lost["records inside kernels replaced by newer ones"], 12);
}

TEST(parents_that_go_round_in_a_circle_or_lead_nowhere_end) {
  Sample sample;
  const CycleScope circle[2] = {{"a", 1}, {nullptr, 0}};
  sample.record.scopes = circle;
  sample.pass(0, 5);
  sample.pass(1, 5);
  SessionTree session(ContextSource::kShadow, 1, false);
  session.add_cycles(0, sample.record);
  CHECK_EQ(session.find(0)->nodes().size(), 4);
  const CycleScope lost[2] = {{"b", 77}, {"c", 1}};
  sample.record.scopes = lost;
  session.add_cycles(0, sample.record);
  CHECK_EQ(path(*session.find(0), 4), "/add/b");
}

TEST(a_session_without_a_timeline_takes_no_room_for_one) {
  const CycleScope scopes[1] = {{"s", kNoScope}};
  const TimelineScope instances[1] = {};
  TimelineProgram program;
  program.count = 1;
  TimelineRecord record;
  record.at = {0, 0, 1};
  record.kernel = "add";
  record.scopes = scopes;
  record.instances = instances;
  record.programs = {&program, 1};
  SessionTree without(ContextSource::kShadow, 1, false);
  SessionTree with(ContextSource::kShadow, 1, false, true);
  CHECK(without.add_timeline(0, record));
  CHECK(with.add_timeline(0, record));
  CHECK_EQ(without.timeline(0).launches().size(), 0);
  CHECK_EQ(with.timeline(0).launches().size(), 1);
}
