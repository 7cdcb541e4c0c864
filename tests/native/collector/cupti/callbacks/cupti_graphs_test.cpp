// Graphs on the double, whose callbacks and ids are those of a recorded libcupti.
#include <thread>
#include <vector>

#include "aggregate/consumer/given_values.h"
#include "check.h"
#include "collector/cupti/callbacks/cupti_graph_launches.h"

using namespace proton;

namespace {

UserMetric metric(const char *name, int64_t value) {
  return {MetricName::of(name, Aggregation::kInclusive), value};
}

} // namespace

TEST(a_replay_holds_the_scopes_of_the_capture) {
  NothingIsLeft after;
  CuptiSession session;
  uint32_t graph = captured("capture", {"first", "second", "second"});
  uint32_t executable = fake_cupti_graph_instantiate(graph);
  launch("replay", executable, 3);
  session.stop();
  CHECK_EQ(session.tree(), "replay/<captured_at>/capture/first=3 "
                           "replay/<captured_at>/capture/second=6 ");
  CHECK_EQ(session.losses(), "");
  CHECK_EQ(session.counts().records, 3); // launches, however many kernels
  CHECK(session.counts().is_complete());
}

TEST(launches_are_complete_with_the_last_of_their_kernels) {
  NothingIsLeft after;
  CuptiSession session;
  uint32_t executable = fake_cupti_graph_instantiate(captured("capture", {"a", "b"}));
  fake_cupti_hold(1);
  launch("replay", executable);
  Aggregator::Held().drain();
  CHECK(!session.counts().is_complete());
  fake_cupti_release(1);
  fake_cupti_period_elapsed();
  fake_cupti_drain();
  CHECK(session.counts().is_complete());
  CHECK_EQ(book().open_count(), 0);
}

TEST(each_graph_holds_its_own_nodes_only) {
  NothingIsLeft after;
  CuptiSession session;
  uint32_t first = fake_cupti_graph_instantiate(captured("one", {"a"}));
  uint32_t second = fake_cupti_graph_instantiate(captured("two", {"b"}));
  launch("first", first);
  launch("second", second);
  session.stop();
  CHECK_EQ(session.tree(), "first/<captured_at>/one/a=1 second/<captured_at>/two/b=1 ");
}

TEST(clones_keep_where_their_nodes_were_captured) {
  NothingIsLeft after;
  CuptiSession session;
  uint32_t graph = captured("capture", {"a"});
  uint32_t clone = fake_cupti_graph_clone(fake_cupti_graph_clone(graph));
  fake_cupti_graph_destroy(graph);
  uint32_t executable = fake_cupti_graph_instantiate(clone);
  fake_cupti_graph_destroy(clone);
  launch("replay", executable);
  session.stop();
  CHECK_EQ(session.tree(), "replay/<captured_at>/capture/a=1 ");
}

TEST(an_updated_graph_holds_the_scopes_of_the_newer_capture) {
  NothingIsLeft after;
  CuptiSession session;
  uint32_t executable = fake_cupti_graph_instantiate(captured("older", {"a", "b"}));
  launch("before", executable);
  fake_cupti_graph_update(executable, captured("newer", {"c", "d"}));
  launch("after", executable, 2);
  session.stop();
  CHECK_EQ(session.tree(), "before/<captured_at>/older/a=1 before/<captured_at>/older/b=1 "
                           "after/<captured_at>/newer/c=2 after/<captured_at>/newer/d=2 ");
  CHECK_EQ(session.losses(), "");
}

TEST(child_graphs_are_part_of_their_parents) {
  NothingIsLeft after;
  CuptiSession session;
  uint32_t leaf = captured("leaf", {"a", "b"});
  uint32_t middle = captured("middle", {"c"});
  fake_cupti_graph_add_child(middle, leaf);
  uint32_t root = fake_cupti_graph_create();
  {
    ScopeGuard guard("root");
    fake_cupti_graph_add_child(root, middle);
    fake_cupti_graph_add_kernel(root, "d", 7);
    fake_cupti_graph_add_child(root, leaf);
  }
  launch("replay", fake_cupti_graph_instantiate(root), 2);
  session.stop();
  CHECK_EQ(session.tree(), "replay/<captured_at>/root/d=2 replay/<captured_at>/middle/c=2 "
                           "replay/<captured_at>/leaf/a=4 replay/<captured_at>/leaf/b=4 ");
  CHECK_EQ(session.losses(), "");
}

TEST(streams_and_threads_capture_into_one_graph) {
  NothingIsLeft after;
  CuptiSession session;
  fake_cupti_capture_begin(7);
  capture("main", {"a"});
  fake_cupti_capture_join(7, 8);
  std::thread([] {
    ScopeGuard guard("side");
    fake_cupti_launch("b", 8);
  }).join();
  uint32_t executable = fake_cupti_graph_instantiate(fake_cupti_capture_end(7));
  launch("replay", executable);
  session.stop();
  CHECK_EQ(session.tree(), "replay/<captured_at>/main/a=1 replay/<captured_at>/side/b=1 ");
}

TEST(graphs_of_before_are_shown_by_the_names_of_their_kernels) {
  NothingIsLeft after;
  uint32_t executable = fake_cupti_graph_instantiate(captured("unseen", {"a", "b"}));
  CuptiSession session;
  launch("replay", executable, 200);
  session.collector.flush();
  CHECK(session.counts().is_complete());
  CHECK_EQ(book().open_count(), 0);
  session.stop();
  CHECK_EQ(session.tree(), "replay/<captured_at>/a=200 replay/<captured_at>/b=200 ");
  CHECK_EQ(session.losses(), "");
}

TEST(launches_of_unknown_graphs_do_not_pile_up) {
  NothingIsLeft after;
  uint32_t executable = fake_cupti_graph_instantiate(captured("unseen", {"a", "b"}));
  CuptiSession session;
  for (int i = 0; i < 1000; ++i) {
    fake_cupti_graph_launch(executable, 7);
    if (i % 100 == 99) {
      fake_cupti_period_elapsed();
      fake_cupti_drain();
    }
  }
  CHECK(book().open_count() <= 64);
  session.stop();
  CHECK_EQ(session.losses(), "");
  CHECK(session.counts().is_complete());
}

TEST(a_session_sees_what_was_captured_while_it_was_active) {
  NothingIsLeft after;
  CuptiSession session;
  fake_cupti_capture_begin(7);
  capture("seen", {"a"});
  session.core->deactivate();
  capture("unseen", {"b"});
  session.core->activate();
  uint32_t executable = fake_cupti_graph_instantiate(fake_cupti_capture_end(7));
  launch("replay", executable);
  session.core->deactivate();
  fake_cupti_graph_launch(executable, 7);
  session.stop();
  CHECK_EQ(session.tree(), "replay/<captured_at>/seen/a=1 replay/<captured_at>/b=1 ");
  CHECK_EQ(session.losses(), "");
}

TEST(captures_survive_the_phase_they_were_made_in) {
  NothingIsLeft after;
  CuptiSession session;
  uint32_t executable = fake_cupti_graph_instantiate(captured("capture", {"a"}));
  session.core->advance_phase();
  session.core->clear_phase(0, true);
  launch("replay", executable);
  session.collector.flush();
  CHECK_EQ(session.tree("count", 1), "replay/<captured_at>/capture/a=1 ");
  for (int i = 0; i < 3; ++i) { // contexts of the capture may be freed and used again by now
    fake_cupti_graph_exec_destroy(executable);
    session.core->advance_phase();
    session.core->clear_phase(session.core->current_phase() - 1, true);
    executable = fake_cupti_graph_instantiate(captured("another", {"b"}));
    launch("again", executable);
    session.collector.flush();
    CHECK_EQ(session.tree("count", session.core->current_phase()),
             "again/<captured_at>/another/b=1 ");
  }
  session.stop();
}

TEST(metrics_of_a_capture_are_added_by_every_launch) {
  NothingIsLeft after;
  CuptiSession session;
  fake_cupti_capture_begin(7);
  {
    ScopeGuard guard("capture");
    fake_cupti_launch("a", 7);
    give_values_or_capture(capture_current(), {metric("flops", 5), metric("bytes", 2)});
  }
  uint32_t executable = fake_cupti_graph_instantiate(fake_cupti_capture_end(7));
  launch("replay", executable, 4);
  {
    ScopeGuard guard("plain");
    give_values_or_capture(capture_current(), {metric("flops", 1)});
  }
  session.stop();
  CHECK_EQ(session.tree("flops"), "replay/<captured_at>/capture=20 plain=1 ");
  CHECK_EQ(session.tree("bytes"), "replay/<captured_at>/capture=8 ");
}

TEST(metrics_of_a_kernel_that_a_hook_named_are_added_to_it) {
  NothingIsLeft after;
  CuptiSession session;
  fake_cupti_capture_begin(7);
  {
    ScopeGuard guard("capture");
    open_scope(hashed("named"), FrameKind::kKernel, session_state());
    give_values_or_capture(capture_current(), {metric("flops", 5)});
    fake_cupti_launch("raw", 7);
    close_top(session_state());
  }
  uint32_t executable = fake_cupti_graph_instantiate(fake_cupti_capture_end(7));
  launch("replay", executable, 3);
  session.stop();
  CHECK_EQ(session.tree(), "replay/<captured_at>/capture/named=3 ");
  CHECK_EQ(session.tree("flops"), "replay/<captured_at>/capture/named=15 ");
}

TEST(whole_graphs_are_one_entry_per_launch) {
  NothingIsLeft after;
  CuptiOptions options = double_options();
  options.whole_graphs = true;
  CuptiSession session(options);
  fake_cupti_capture_begin(7);
  {
    ScopeGuard guard("capture");
    fake_cupti_launch("a", 7);
    give_values_or_capture(capture_current(), {metric("flops", 5)});
  }
  uint32_t executable = fake_cupti_graph_instantiate(fake_cupti_capture_end(7));
  launch("replay", executable, 3);
  fake_cupti_launch("plain", 7);
  session.stop();
  CHECK_EQ(session.tree(), "replay/<graph>=3 plain=1 ");
  CHECK_EQ(session.tree("flops"), "replay/<captured_at>/capture=15 ");
  CHECK_EQ(session.losses(), "");
  CHECK(session.counts().is_complete());
}

TEST(destroyed_graphs_are_forgotten) {
  NothingIsLeft after;
  CuptiSession session;
  for (int i = 0; i < 300; ++i) {
    uint32_t graph = captured("capture", {"a", "b"});
    uint32_t executable = fake_cupti_graph_instantiate(graph);
    fake_cupti_graph_destroy(graph);
    launch("replay", executable, 2);
    fake_cupti_graph_exec_destroy(executable); // while its work is under way
    CHECK(book().layout_count() <= 301);
  }
  session.collector.flush();
  CHECK_EQ(book().layout_count(), 0);
  CHECK_EQ(session.tree(),
           "replay/<captured_at>/capture/a=600 replay/<captured_at>/capture/b=600 ");
  session.stop();
  CHECK_EQ(session.losses(), "");
}

TEST(records_that_are_lost_are_counted) {
  NothingIsLeft after;
  CuptiSession session;
  uint32_t executable = fake_cupti_graph_instantiate(captured("capture", {"a", "b", "c"}));
  fake_cupti_hold(1);
  launch("replay", executable);
  fake_cupti_drop(2);
  fake_cupti_release(1);
  session.stop();
  CHECK_EQ(session.lost("records dropped by CUPTI"), 2);
  CHECK(session.counts().is_complete());
}

TEST(a_restart_knows_no_graph_of_before) {
  NothingIsLeft after;
  uint32_t executable = 0;
  {
    CuptiSession session;
    executable = fake_cupti_graph_instantiate(captured("capture", {"a"}));
  }
  CuptiSession session;
  launch("replay", executable);
  session.stop();
  CHECK_EQ(session.tree(), "replay/<captured_at>/a=1 ");
}

TEST(replays_take_no_more_memory_than_one) {
  NothingIsLeft after;
  CuptiSession session;
  std::vector<uint32_t> executables;
  for (int i = 0; i < 100; ++i)
    executables.push_back(fake_cupti_graph_instantiate(captured("capture", {"a", "b"})));
  size_t contexts = 0, bytes = 0;
  for (int round = 0; round < 3; ++round) {
    for (uint32_t executable : executables)
      launch("replay", executable, 5);
    session.collector.flush();
    size_t size = session.core->encode(0, FileFormat::kProton).size();
    CHECK_EQ(book().open_count(), 0);
    CHECK_EQ(book().layout_count(), executables.size());
    CHECK(round == 0 || size < bytes + 200); // larger numbers, no more nodes
    CHECK(round == 0 || book().capture_count() == contexts);
    bytes = size;
    contexts = book().capture_count();
  }
  session.stop();
}

TEST(captures_survive_a_pause_of_the_collector) {
  NothingIsLeft after;
  CuptiSession session;
  fake_cupti_capture_begin(7);
  capture("seen", {"a"});
  session.core->deactivate();
  session.collector.stop();
  capture("unseen", {"b"});
  session.collector.start();
  session.core->activate();
  uint32_t executable = fake_cupti_graph_instantiate(fake_cupti_capture_end(7));
  launch("replay", executable);
  session.core->deactivate();
  session.collector.stop();
  fake_cupti_graph_launch(executable, 7);
  session.collector.start();
  session.core->activate();
  launch("again", executable);
  session.stop();
  CHECK_EQ(session.tree(), "replay/<captured_at>/seen/a=1 replay/<captured_at>/b=1 "
                           "again/<captured_at>/seen/a=1 again/<captured_at>/b=1 ");
  CHECK_EQ(session.losses(), "");
}
