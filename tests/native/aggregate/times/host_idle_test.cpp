#include "aggregate/times/device_times.h"

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "calltree/call_path_tree.h"
#include "check.h"
#include "support/name.h"

using namespace proton;

namespace {

/// A tree with a few nodes, and what their column says.
struct Rows {
  CallPathTree tree;
  std::vector<NodeIndex> nodes;

  explicit Rows(size_t count) {
    for (size_t i = 0; i < count; ++i)
      nodes.push_back(tree.child(kRootNode, Name("row " + std::to_string(i)), FrameKind::kPython));
  }
  int64_t idle_ns(size_t row) const {
    for (const MetricColumn &column : tree.metrics().columns())
      if (column.name == kIdle && column.has(nodes[row]))
        return column.ints[nodes[row]];
    return 0;
  }
  bool has_column() const { return !tree.metrics().columns().empty(); }
};

struct Span {
  int64_t start_ns;
  int64_t end_ns;
  size_t row = 0;
};

/// Idle time of each row, nanosecond by nanosecond.
std::map<size_t, int64_t> brute_force(const std::vector<Span> &work,
                                      const std::vector<Span> &samples) {
  std::map<size_t, int64_t> idle;
  for (const Span &sample : samples)
    for (int64_t at_ns = sample.start_ns; at_ns < sample.end_ns; ++at_ns)
      idle[sample.row] += std::none_of(work.begin(), work.end(), [&](const Span &each) {
        return each.start_ns <= at_ns && at_ns < each.end_ns;
      });
  return idle;
}

} // namespace

TEST(time_of_the_host_outside_of_work_is_idle_before_between_and_after) {
  Rows rows(2);
  HostIdle idle;
  idle.add_sample(rows.nodes[0], 0, 100);
  idle.add_sample(rows.nodes[1], 100, 200);
  idle.add_work(30, 60);
  idle.add_work(150, 170);
  idle.publish(rows.tree);
  CHECK_EQ(rows.idle_ns(0), 70);
  CHECK_EQ(rows.idle_ns(1), 80);
}

TEST(overlapping_work_counts_once) {
  Rows rows(1);
  HostIdle idle;
  idle.add_sample(rows.nodes[0], 0, 100);
  idle.add_work(10, 50);
  idle.add_work(20, 60);
  idle.publish(rows.tree);
  CHECK_EQ(rows.idle_ns(0), 50);
}

TEST(what_is_published_may_shrink_when_late_work_comes) {
  Rows rows(1);
  HostIdle idle;
  idle.add_work(0, 10);
  idle.add_sample(rows.nodes[0], 10, 100);
  idle.publish(rows.tree);
  CHECK_EQ(rows.idle_ns(0), 90);
  idle.add_work(20, 60);
  idle.publish(rows.tree);
  idle.publish(rows.tree);
  CHECK_EQ(rows.idle_ns(0), 50);
}

TEST(without_work_of_a_device_nothing_is_idle) {
  Rows rows(1);
  HostIdle idle;
  idle.add_sample(rows.nodes[0], 0, 100);
  idle.publish(rows.tree);
  CHECK(!rows.has_column());
}

TEST(a_sample_that_comes_after_its_gaps_were_closed_still_gets_them) {
  Rows rows(1);
  HostIdle idle;
  for (int64_t i = 0; i < 5000; ++i)
    idle.add_work(i * 10, i * 10 + 4);
  idle.add_sample(rows.nodes[0], 0, 50'000);
  idle.publish(rows.tree);
  CHECK_EQ(rows.idle_ns(0), 30'000);
}

TEST(many_pieces_in_any_interleaving_agree_with_a_count_of_nanoseconds) {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    std::vector<Span> work, samples;
    int64_t at_ns = 5;
    for (int i = 0; i < 2000; ++i) {
      at_ns += random() % 6;
      int64_t end_ns = at_ns + 1 + random() % 9;
      work.push_back({at_ns, end_ns});
    }
    int64_t seen_ns = 0;
    while (seen_ns < at_ns + 50) {
      int64_t end_ns = seen_ns + 1 + random() % 100;
      samples.push_back({seen_ns, end_ns, random() % 5});
      seen_ns = end_ns;
    }
    Rows rows(5);
    HostIdle idle;
    size_t next_work = 0, next_sample = 0;
    while (next_work < work.size() || next_sample < samples.size()) {
      bool takes_work = next_sample == samples.size() || random() % 30 != 0;
      if (takes_work && next_work < work.size()) {
        idle.add_work(work[next_work].start_ns, work[next_work].end_ns);
        ++next_work;
      } else if (next_sample < samples.size()) {
        const Span &sample = samples[next_sample++];
        idle.add_sample(rows.nodes[sample.row], sample.start_ns, sample.end_ns);
      }
      if (random() % 500 == 0)
        idle.publish(rows.tree);
    }
    idle.publish(rows.tree);
    for (const auto &[row, idle_ns] : brute_force(work, samples))
      CHECK_EQ(rows.idle_ns(row), idle_ns);
  }
}
