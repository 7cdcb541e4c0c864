#include "calltree/context_tree.h"

#include <thread>

#include "check.h"

using namespace proton;

namespace {

ContextId scope(ContextId parent, const char *name, EpochId epoch = 1) {
  return ContextTree::instance().child(parent, name, FrameKind::kScope, 1, epoch);
}

void collect_all(const std::vector<ContextId> &roots = {}) {
  ContextTree::instance().collect({}, [&](std::vector<ContextId> &kept) { kept = roots; });
}

} // namespace

TEST(equal_frames_have_one_id) {
  ContextId a = scope(0, "a");
  CHECK_EQ(scope(0, "a"), a);
  CHECK(scope(0, "b") != a);
  CHECK(scope(a, "a") != a);
  CHECK(ContextTree::instance().child(0, "a", FrameKind::kOp, 1, 1) != a);
  collect_all();
}

TEST(frames_of_another_generation_are_other_frames) {
  ContextId old_frame = ContextTree::instance().child(0, "a", FrameKind::kScope, 1, 1);
  ContextId new_frame = ContextTree::instance().child(0, "a", FrameKind::kScope, 2, 1);
  CHECK(old_frame != new_frame);
  CHECK_EQ(ContextTree::instance().node(new_frame).generation, 2);
  collect_all();
}

TEST(a_node_knows_its_path) {
  ContextId inner = scope(scope(0, "outer"), "inner");
  const ContextNode &node = ContextTree::instance().node(inner);
  CHECK_EQ(node.name.text(), "inner");
  CHECK_EQ(node.depth, 2);
  CHECK_EQ(ContextTree::instance().node(node.parent).name.text(), "outer");
  collect_all();
}

TEST(a_collection_frees_whole_unused_subtrees) {
  collect_all();
  size_t before = ContextTree::instance().live_count();
  ContextId node = 0;
  for (int level = 0; level < 100; ++level)
    node = scope(node, "level");
  CHECK_EQ(ContextTree::instance().live_count(), before + 100);
  collect_all();
  CHECK_EQ(ContextTree::instance().live_count(), before);
}

TEST(a_collection_of_many_nodes_lets_others_in_between) {
  collect_all();
  ContextTree &tree = ContextTree::instance();
  for (int i = 0; i < 50'000; ++i)
    tree.child(0, "n" + std::to_string(i), FrameKind::kScope, 1, 5);
  ContextId deep = tree.child(0, "deep", FrameKind::kScope, 1, 5);
  for (int i = 0; i < 100; ++i)
    deep = tree.child(deep, "deeper", FrameKind::kScope, 1, 5);
  uint32_t before = tree.collections();
  int looks = 0;
  tree.collect({}, [&](std::vector<ContextId> &) { ++looks; });
  CHECK(looks > 4);
  CHECK_EQ(tree.collections(), before + 2 * static_cast<uint32_t>(looks));
  CHECK_EQ(tree.live_count(), 0);
}

TEST(a_collection_keeps_roots_and_what_is_above_them) {
  collect_all();
  size_t before = ContextTree::instance().live_count();
  ContextId kept = scope(scope(0, "outer"), "kept");
  scope(kept, "freed");
  collect_all({kept});
  CHECK_EQ(ContextTree::instance().live_count(), before + 2);
  CHECK_EQ(ContextTree::instance().node(kept).name.text(), "kept");
  collect_all();
}

TEST(a_collection_keeps_nodes_of_a_live_epoch) {
  collect_all();
  size_t before = ContextTree::instance().live_count();
  ContextId old_use = scope(0, "old", 5);
  scope(0, "new", 10);
  ContextId touched = scope(0, "touched", 5);
  ContextTree::instance().touch(touched, 11);
  ContextTree::instance().collect({10, 11}, [](std::vector<ContextId> &) {});
  CHECK_EQ(ContextTree::instance().live_count(), before + 2);
  CHECK(!ContextTree::instance().node(old_use).live);
  collect_all();
}

TEST(a_thread_that_still_works_in_an_older_epoch_takes_no_stamp_back) {
  ContextTree &tree = ContextTree::instance();
  ContextId id = scope(0, "named by two epochs", 1);
  CHECK(tree.touch(id, 11));
  CHECK(!tree.touch(id, 11));
  CHECK(tree.touch(id, 5));
  CHECK_EQ(scope(0, "named by two epochs", 4), id);
  tree.collect({10, 11}, [](std::vector<ContextId> &) {});
  CHECK(tree.node(id).live);
  collect_all();
}

TEST(a_node_is_kept_for_the_older_epoch_of_a_thread_that_was_late) {
  ContextTree &tree = ContextTree::instance();
  ContextId touched = scope(0, "touched late", 11), found = scope(0, "found late", 11);
  ContextId since = scope(0, "touched since", 11), young = scope(0, "young", 11);
  CHECK(tree.touch(touched, 5));
  CHECK_EQ(scope(0, "found late", 6), found);
  CHECK(tree.touch_since(tree.collections(), since, 5));
  tree.collect({5, 6, 10, 12}, [](std::vector<ContextId> &) {});
  CHECK(tree.node(touched).live && tree.node(found).live && tree.node(since).live);
  CHECK(!tree.node(young).live); // no record of these epochs names it
  collect_all();
}

TEST(a_parent_from_before_a_collection_gets_no_child) {
  ContextTree &tree = ContextTree::instance();
  uint32_t before = tree.settled_collections();
  ContextId parent = scope(0, "gone");
  CHECK(tree.child_since(before, parent, "child", FrameKind::kScope, 1, 1) != ContextTree::kStale);
  collect_all();
  CHECK_EQ(tree.child_since(before, parent, "child", FrameKind::kScope, 1, 1), ContextTree::kStale);
  CHECK_EQ(tree.live_count(), 0);
}

TEST(the_number_is_odd_while_a_collection_is_at_work) {
  ContextTree &tree = ContextTree::instance();
  uint32_t during = 0, settled = 0;
  std::thread waits;
  tree.collect({}, [&](std::vector<ContextId> &) {
    if (waits.joinable())
      return; // of a later slice
    during = tree.collections();
    waits = std::thread([&] { settled = tree.settled_collections(); });
  });
  waits.join();
  CHECK_EQ(during % 2, 1);
  CHECK(settled % 2 == 0 && settled > during);
}

TEST(a_million_names_over_many_collections_leave_nothing) {
  collect_all();
  size_t nodes = ContextTree::instance().live_count(), names = live_name_count();
  for (int phase = 0; phase < 100; ++phase) {
    for (int i = 0; i < 1000; ++i)
      scope(0, ("scope " + std::to_string(phase * 1000 + i)).c_str());
    collect_all();
  }
  CHECK_EQ(ContextTree::instance().live_count(), nodes);
  CHECK_EQ(live_name_count(), names);
}

TEST(threads_that_open_the_same_frame_get_the_same_id) {
  std::vector<ContextId> ids(4);
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < ids.size(); ++thread)
    threads.emplace_back([&ids, thread] {
      for (int i = 0; i < 1000; ++i)
        ids[thread] = scope(scope(0, "shared"), "inner");
    });
  for (std::thread &thread : threads)
    thread.join();
  for (ContextId id : ids)
    CHECK_EQ(id, ids[0]);
  collect_all();
}

TEST(a_use_since_a_collection_is_noted_and_one_before_it_refused) {
  ContextTree &tree = ContextTree::instance();
  uint32_t seen = tree.collections();
  ContextId node = scope(0, "node", 5);
  CHECK(tree.touch_since(seen, node, 3));
  CHECK_EQ(tree.node(node).last_used.load(), 5); // a thread that is late takes nothing away
  CHECK(tree.touch_since(seen, node, 7));
  CHECK_EQ(tree.node(node).last_used.load(), 7);
  collect_all();
  CHECK(!tree.touch_since(seen, node, 9));
  CHECK(!tree.touch_since(seen, node, 6)); // the stamp it left behind says nothing
}
