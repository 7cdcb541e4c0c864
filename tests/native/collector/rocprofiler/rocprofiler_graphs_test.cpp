// Graphs of HIP: nodes stand where they were captured, whatever the order of their dispatch.
#include "check.h"
#include "collector/rocprofiler/rocprofiler_session.h"

using namespace proton;

namespace {

/// A graph of a kernel "k" in each of two scopes and one "other" between.
uint32_t capture_two_scopes(uint32_t stream) {
  fake_amd_capture_begin(stream);
  {
    ScopeGuard scope("first");
    fake_amd_launch("k", stream);
    fake_amd_launch("other", stream);
  }
  {
    ScopeGuard scope("second");
    fake_amd_launch("k", stream);
  }
  return fake_amd_capture_end(stream);
}

} // namespace

TEST(nodes_stand_below_the_launch_at_the_place_of_their_capture) {
  RocprofilerSession session;
  uint32_t exec = fake_amd_graph_instantiate(capture_two_scopes(7));
  for (int i = 0; i < 2; ++i) {
    ScopeGuard scope("replay");
    fake_amd_graph_launch(exec, 7);
  }
  session.stop();
  CHECK_EQ(session.tree(), "replay/<captured_at>/first/k=2 replay/<captured_at>/first/other=2 "
                           "replay/<captured_at>/second/k=2 ");
  CHECK_EQ(session.lost(), 0);
  CHECK(session.counts().is_complete());
}

TEST(kernels_are_found_by_name_where_branches_are_dispatched_in_another_order) {
  RocprofilerSession session;
  fake_amd_capture_begin(7);
  for (const char *name : {"a", "b", "c"}) {
    ScopeGuard scope(name);
    fake_amd_launch(name, 7);
  }
  uint32_t exec = fake_amd_graph_instantiate(fake_amd_capture_end(7));
  fake_amd_graph_order(1);
  fake_amd_graph_launch(exec, 7);
  fake_amd_graph_order(0);
  session.stop();
  CHECK_EQ(session.tree(), "<captured_at>/c/c=1 <captured_at>/b/b=1 <captured_at>/a/a=1 ");
}

TEST(kernels_of_one_name_are_told_apart_by_their_shape) {
  RocprofilerSession session;
  fake_amd_capture_begin(7);
  for (uint32_t blocks : {1u, 2u, 3u}) {
    ScopeGuard scope(std::to_string(blocks).c_str());
    FakeAmdLaunch launch;
    launch.grid[0] = blocks;
    launch.duration_ns = 1000 * blocks;
    fake_amd_launch_as(&launch);
  }
  uint32_t exec = fake_amd_graph_instantiate(fake_amd_capture_end(7));
  fake_amd_graph_order(1);
  fake_amd_graph_launch(exec, 7);
  fake_amd_graph_order(0);
  session.stop();
  CHECK_EQ(session.tree("time (ns)"), "<captured_at>/3/kernel=3000 <captured_at>/2/kernel=2000 "
                                      "<captured_at>/1/kernel=1000 ");
}

TEST(a_stream_that_joins_a_capture_is_part_of_it) {
  RocprofilerSession session;
  fake_amd_capture_begin(7);
  fake_amd_launch("here", 7);
  fake_amd_capture_join(7, 8);
  {
    ScopeGuard scope("side");
    fake_amd_launch("there", 8);
  }
  uint32_t exec = fake_amd_graph_instantiate(fake_amd_capture_end(7));
  fake_amd_graph_launch(exec, 7);
  session.stop();
  CHECK_EQ(session.tree(), "<captured_at>/here=1 <captured_at>/side/there=1 ");
  CHECK_EQ(session.lost(), 0);
}

TEST(a_graph_that_was_captured_before_shows_its_kernels_by_name) {
  uint32_t graph = 0;
  {
    RocprofilerSession session; // registers
    session.stop();
  }
  graph = fake_amd_graph_create();
  fake_amd_graph_add_kernel(graph, "built");
  uint32_t exec = fake_amd_graph_instantiate(graph);
  RocprofilerSession session;
  fake_amd_graph_launch(exec, 7);
  session.stop();
  CHECK_EQ(session.tree(), "<captured_at>/built=1 ");
}

TEST(an_updated_graph_runs_what_the_other_was_captured_with) {
  RocprofilerSession session;
  uint32_t exec = fake_amd_graph_instantiate(capture_two_scopes(7));
  fake_amd_capture_begin(7);
  {
    ScopeGuard scope("later");
    for (const char *name : {"x", "y", "z"})
      fake_amd_launch(name, 7);
  }
  fake_amd_graph_update(exec, fake_amd_capture_end(7));
  fake_amd_graph_launch(exec, 7);
  session.stop();
  CHECK_EQ(session.tree(),
           "<captured_at>/later/x=1 <captured_at>/later/y=1 <captured_at>/later/z=1 ");
  CHECK_EQ(session.lost(), 0);
}

TEST(clones_and_child_graphs_keep_the_places_of_their_nodes) {
  RocprofilerSession session;
  uint32_t child = capture_two_scopes(7);
  uint32_t parent = fake_amd_graph_create();
  fake_amd_graph_add_child(parent, child);
  uint32_t exec = fake_amd_graph_instantiate(fake_amd_graph_clone(parent));
  fake_amd_graph_launch(exec, 7);
  session.stop();
  CHECK_EQ(session.tree(), "<captured_at>/first/k=1 <captured_at>/first/other=1 "
                           "<captured_at>/second/k=1 ");
  CHECK_EQ(session.lost(), 0);
}

TEST(a_handle_that_is_used_again_is_another_graph) {
  RocprofilerSession session;
  uint32_t graph = capture_two_scopes(7);
  uint32_t exec = fake_amd_graph_instantiate(graph);
  fake_amd_graph_exec_destroy(exec);
  fake_amd_graph_destroy(graph);
  session.collector.stop(); // changes of graphs are followed all the same
  fake_amd_capture_begin(7);
  fake_amd_launch("nobody saw its scope", 7);
  uint32_t second = fake_amd_graph_instantiate(fake_amd_capture_end(7));
  session.collector.start();
  fake_amd_graph_launch(second, 7);
  session.stop();
  CHECK_EQ(session.tree(), "<captured_at>/nobody saw its scope=1 ");
}

TEST(many_launches_in_lots_of_buffers_find_their_nodes) {
  HipOptions options = rocprofiler_options();
  RocprofilerSession session(options);
  uint32_t exec = fake_amd_graph_instantiate(capture_two_scopes(7));
  for (int i = 0; i < 3000; ++i)
    fake_amd_graph_launch(exec, 7);
  fake_amd_drain();
  session.stop();
  CHECK_EQ(session.tree(), "<captured_at>/first/k=3000 <captured_at>/first/other=3000 "
                           "<captured_at>/second/k=3000 ");
  CHECK_EQ(session.lost(), 0);
}
