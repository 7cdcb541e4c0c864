#include "aggregate/memory/memory_use.h"

#include <algorithm>
#include <map>
#include <random>

#include "check.h"
#include "own_columns.h"

using namespace proton;

namespace {

struct Rows {
  Rows() {
    for (const char *name : {"a", "b", "c"})
      nodes.push_back(tree.child(kRootNode, Name(name), FrameKind::kScope));
  }
  int64_t value(const std::string &name, NodeIndex node) {
    use.publish(tree);
    return own_value(tree, name, node);
  }
  int64_t sum(const std::string &name) {
    use.publish(tree);
    return own_sum(tree, name);
  }

  CallPathTree tree;
  std::vector<NodeIndex> nodes;
  MemoryUse use;
};

} // namespace

TEST(rows_show_what_they_held_at_the_peak_and_sum_to_it) {
  Rows rows;
  NodeIndex a = rows.nodes[0], b = rows.nodes[1];
  rows.use.allocated(a, 0, 100, 0);
  rows.use.allocated(b, 0, 50, 0); // the peak
  rows.use.freed(a, 0, 100, 0);
  rows.use.allocated(b, 0, 60, 0);
  CHECK_EQ(rows.value("peak_bytes", a), 100);
  CHECK_EQ(rows.value("peak_bytes", b), 50);
  CHECK_EQ(rows.value("alloc_bytes", b), 110);
  CHECK_EQ(rows.value("freed_bytes", a), 100);
  CHECK_EQ(rows.value("kept_bytes", b), 110);
  rows.use.allocated(a, 0, 41, 0); // a new one
  CHECK_EQ(rows.value("peak_bytes", a), 41);
  CHECK_EQ(rows.value("peak_bytes", b), 110);
}

TEST(peaks_are_those_of_a_model_that_keeps_everything) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 200; ++round) {
    Rows rows;
    std::map<NodeIndex, int64_t> live, at_peak;
    std::vector<std::pair<NodeIndex, int64_t>> blocks;
    int64_t total = 0, peak = -1;
    for (int i = 0; i < 300; ++i) {
      if (blocks.empty() || random() % 5 < 3) {
        NodeIndex node = rows.nodes[random() % rows.nodes.size()];
        auto bytes = static_cast<int64_t>(random() % 1000) + 1;
        rows.use.allocated(node, 0, bytes, 0);
        blocks.emplace_back(node, bytes);
        live[node] += bytes;
        total += bytes;
      } else {
        std::swap(blocks[random() % blocks.size()], blocks.back());
        auto [node, bytes] = blocks.back();
        blocks.pop_back();
        rows.use.freed(node, 0, bytes, 0);
        live[node] -= bytes;
        total -= bytes;
      }
      if (total > peak) {
        peak = total;
        at_peak = live;
      }
    }
    for (NodeIndex node : rows.nodes)
      CHECK_EQ(rows.value("peak_bytes", node), at_peak[node]);
    CHECK_EQ(rows.sum("peak_bytes"), peak);
  }
}

TEST(each_device_has_a_peak_of_its_own) {
  Rows rows;
  NodeIndex a = rows.nodes[0];
  rows.use.allocated(a, 0, 10, 0);
  rows.use.freed(a, 0, 10, 0);
  rows.use.allocated(a, 1, 5, 0);
  CHECK_EQ(rows.value("peak_bytes", a), 15); // as much as both need
}

TEST(what_was_alive_before_counts_at_the_peak_and_not_as_allocated) {
  Rows rows;
  NodeIndex a = rows.nodes[0], b = rows.nodes[1];
  rows.use.begin_alive(0);
  rows.use.add_alive(a, 0, 1000);
  rows.use.end_alive();
  rows.use.allocated(b, 0, 10, 0);
  rows.use.freed(b, 0, 10, 0);
  CHECK_EQ(rows.sum("peak_bytes"), 1010);
  CHECK_EQ(rows.value("alloc_bytes", a), 0);
  rows.use.begin_alive(0); // after a pause in which it was freed
  rows.use.end_alive();
  CHECK_EQ(rows.sum("peak_bytes"), 1010);
  CHECK_EQ(rows.value("kept_bytes", a), 0);
}

TEST(a_row_that_keeps_one_more_block_in_each_step_grows) {
  Rows rows;
  NodeIndex kept = rows.nodes[0], temporary = rows.nodes[1], twice = rows.nodes[2];
  rows.use.begin_alive(1);
  rows.use.end_alive();
  for (uint32_t step = 1; step <= 8; ++step) {
    rows.use.allocated(temporary, 0, 512, step);
    rows.use.allocated(kept, 0, 512, step);
    if (step % 2 == 0)
      rows.use.allocated(twice, 0, 512, step);
    rows.use.freed(temporary, 0, 512, step);
  }
  CHECK_EQ(rows.value("grown_bytes", kept), 8 * 512);
  CHECK_EQ(rows.value("grown_bytes", temporary), 0);
  CHECK_EQ(rows.value("grown_bytes", twice), 0);
}

TEST(a_row_that_ceases_to_grow_is_not_said_to_grow_any_more) {
  Rows rows;
  NodeIndex kept = rows.nodes[0], other = rows.nodes[1];
  rows.use.begin_alive(1);
  rows.use.end_alive();
  for (uint32_t step = 1; step <= 6; ++step)
    rows.use.allocated(kept, 0, 512, step);
  CHECK_EQ(rows.value("grown_bytes", kept), 6 * 512);
  for (uint32_t step = 7; step <= 9; ++step)
    rows.use.allocated(other, 0, 512, step);
  CHECK_EQ(rows.value("grown_bytes", kept), 0);
}

TEST(a_cache_that_is_replaced_by_a_larger_one_does_not_grow_in_blocks) {
  Rows rows;
  rows.use.begin_alive(1);
  rows.use.end_alive();
  int64_t before = 0;
  for (uint32_t step = 1; step <= 8; ++step) {
    rows.use.allocated(rows.nodes[0], 0, step * 512, step);
    if (before != 0)
      rows.use.freed(rows.nodes[0], 0, before, step);
    before = step * 512;
  }
  CHECK_EQ(rows.value("grown_bytes", rows.nodes[0]), 0);
}

TEST(an_error_for_lack_of_memory_is_the_peak_and_names_who_asked) {
  Rows rows;
  NodeIndex a = rows.nodes[0], b = rows.nodes[1];
  rows.use.allocated(a, 0, 100, 0);
  rows.use.freed(a, 0, 60, 0);
  rows.use.out_of_memory(b, 0, 80);
  rows.use.allocated(a, 0, 70, 0); // less than what was asked for
  rows.use.freed(a, 0, 70, 0);
  CHECK_EQ(rows.value("peak_bytes", a), 40);
  CHECK_EQ(rows.value("oom_bytes", b), 80);
}
