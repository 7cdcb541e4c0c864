// How events are handed over: nodes before their events, bounds, losses, phases, other records.
#include <vector>

#include "aggregate/consumer/timeline_session.h"
#include "check.h"
#include "record/timeline_record.h"

using namespace proton;

namespace {

RecordSink &sink() { return Aggregator::instance(); }

void run_kernels(size_t count) {
  std::vector<KernelRecord> records(count);
  for (KernelRecord &record : records) {
    record.correlation_id = next_correlation_id();
    record.name = "k";
    sink().launched(record.correlation_id);
  }
  sink().complete(records);
}

/// A launch of a kernel with `count` instances of the scope "load".
void run_scopes(size_t count, uint32_t claimed = 0) {
  std::vector<TimelineScope> instances(count);
  std::vector<CycleScope> scopes{{"load", kNoScope}};
  std::vector<TimelineProgram> programs(1);
  programs[0].count = claimed != 0 ? claimed : static_cast<uint32_t>(count);
  TimelineRecord record;
  record.at = capture_current();
  record.kernel = "matmul";
  record.scopes = scopes;
  record.programs = programs;
  record.instances = instances;
  sink().complete(record);
}

void seen_scope(const char *name) { TimedScope scope(name); }

} // namespace

TEST(nodes_come_once_parents_first_and_numbered_as_in_the_tree) {
  TimelineSession session;
  {
    TimedScope outer("outer");
    seen_scope("inner");
  }
  session.events();
  {
    TimedScope outer("outer");
    seen_scope("later");
    seen_scope("inner");
  }
  const KeptEvents::Phase &phase = session.events();
  const std::vector<TreeNode> &nodes = session.tree.bare_tree(0).nodes();
  CHECK_EQ(phase.batches, 2);
  CHECK_EQ(phase.paths.size(), nodes.size());
  for (size_t i = 1; i < nodes.size(); ++i)
    CHECK(phase.paths[i].ends_with(nodes[i].name.text()) && phase.kinds[i] == nodes[i].kind);
  CHECK_EQ(described(phase),
           "scope outer/inner; scope outer; scope outer/later; scope outer/inner; scope outer");
}

TEST(a_batch_is_handed_over_when_it_is_full) {
  TimelineSession session;
  run_kernels(SessionEvents::kBatchEvents - 1);
  CHECK_EQ(session.kept->phases[0].batches, 0);
  CHECK_EQ(session.kept->waits.load(), 0);
  run_kernels(1);
  CHECK_EQ(session.kept->phases[0].batches, 1);
  CHECK_EQ(session.kept->phases[0].events.size(), SessionEvents::kBatchEvents);
  CHECK_EQ(session.kept->waits.load(), 1); // who delivers records waits for the writer
  run_kernels(2 * SessionEvents::kBatchEvents + 3);
  CHECK_EQ(session.kept->phases[0].batches, 3);
  CHECK_EQ(session.events().events.size(), 3 * SessionEvents::kBatchEvents + 3);
  CHECK_EQ(session.kept->largest, SessionEvents::kBatchEvents);
  CHECK_EQ(session.lost(), 0);
}

TEST(who_only_asks_for_what_there_is_does_not_wait) {
  TimelineSession session;
  run_kernels(5);
  CHECK_EQ(session.events().batches, 1);
  CHECK_EQ(session.events().batches, 1); // nothing new
  CHECK_EQ(session.kept->waits.load(), 0);
}

TEST(events_that_find_no_room_are_counted_and_their_nodes_are_not_lost) {
  TimelineSession session;
  session.kept->is_full = true;
  seen_scope("first");
  CHECK_EQ(session.events().events.size(), 0);
  run_kernels(SessionEvents::kBatchEvents);
  CHECK_EQ(session.lost(), SessionEvents::kBatchEvents + 1);
  session.kept->is_full = false;
  seen_scope("first");
  seen_scope("second");
  CHECK_EQ(described(session.events()), "scope first; scope second");
  CHECK_EQ(session.lost(), SessionEvents::kBatchEvents + 1);
  CHECK_EQ(session.events().threads.size(), 1);
}

TEST(a_phase_has_its_own_nodes_and_an_end) {
  TimelineSession session;
  seen_scope("a");
  seen_scope("b");
  session.events();
  session.advance_phase();
  seen_scope("b");
  CHECK_EQ(described(session.events(1)), "scope b");
  CHECK_EQ(session.events(1).paths.size(), 2);
  CHECK(!session.kept->phases[0].is_over);
  {
    Aggregator::Held().events().end_phase({&session.tree, 0});
  }
  CHECK(session.kept->phases[0].is_over && !session.kept->phases[1].is_over);
  seen_scope("c");
  CHECK_EQ(described(session.events(1)), "scope b; scope c");
}

TEST(a_phase_that_was_cleared_begins_anew) {
  TimelineSession session;
  {
    TimedScope outer("old");
    seen_scope("inner");
  }
  session.events();
  seen_scope("not handed over");
  {
    Aggregator::Held held;
    held.drain();
    session.tree.drop_phase(0);
    session.kept->phases.erase(0); // as the sink does
  }
  {
    TimedScope outer("new");
    seen_scope("inner");
  }
  const KeptEvents::Phase &phase = session.events();
  CHECK_EQ(described(phase), "scope new/inner; scope new");
  CHECK_EQ(phase.paths.size(), 3);
  CHECK_EQ(phase.threads.size(), 1);
}

TEST(scopes_inside_kernels_are_handed_over_with_the_node_of_their_kernel) {
  TimelineSession session;
  {
    TimedScope scope("s");
    run_scopes(3);
  }
  const KeptEvents::Phase &phase = session.events();
  CHECK_EQ(phase.kernel_scopes.size(), 1);
  const TimelineLaunch &launch = *phase.kernel_scopes[0];
  CHECK_EQ(phase.paths.at(launch.kernel), "s/matmul");
  CHECK_EQ(launch.instances.size(), 3);
  CHECK_EQ((*launch.scope_names)[0].text(), "load");
  CHECK(session.tree.timeline(0).launches().empty()); // nothing is kept
}

TEST(many_scopes_inside_kernels_fill_a_batch) {
  TimelineSession session;
  size_t many = SessionEvents::kBatchScopeBytes / sizeof(TimelineScope);
  run_scopes(many);
  CHECK_EQ(session.kept->phases[0].batches, 1);
  session.kept->is_full = true;
  run_scopes(many);
  run_scopes(2, 5); // claims more than it has
  session.events();
  CHECK_EQ(session.kept->phases[0].kernel_scopes.size(), 1);
  CHECK_EQ(session.lost(EventBook::kNoRoomForScopes), many + 2);
  CHECK_EQ(session.lost(), 0);
}

TEST(without_a_sink_scopes_inside_kernels_stay_with_the_session) {
  TimelineSession session(false);
  run_scopes(3);
  CHECK_EQ(session.tree.timeline(0).launches().size(), 1);
}
