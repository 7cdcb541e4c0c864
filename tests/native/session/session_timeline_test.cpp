// Sessions with a timeline in files, and phases that are written while the program runs.
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "check.h"
#include "context/thread/host_range.h"
#include "record/record.h"
#include "record/record_sink.h"
#include "scratch_folder.h"
#include "session/partial_writer.h"
#include "session/session_registry.h"
#include "session/text_encoder.h"
#include "support/clock.h"
#include "support/error.h"

using namespace proton;

namespace {

SessionRegistry &sessions() { return SessionRegistry::instance(); }

int64_t soon() { return monotonic_ns() + 60'000'000'000; }

void run_kernel(const char *name, bool completes = true) {
  KernelRecord kernel;
  kernel.correlation_id = next_correlation_id();
  kernel.name = name;
  kernel.start_ns = monotonic_ns();
  kernel.end_ns = kernel.start_ns + 10;
  Aggregator::instance().launched(kernel.correlation_id);
  if (completes)
    Aggregator::instance().complete({&kernel, 1});
}

void begin_burst() { Aggregator::instance().begin_burst("CUDA", 0, monotonic_ns()); }

/// One sample, from long ago until now.
void end_burst() {
  auto burst = std::make_shared<CounterBurst>();
  burst->metrics = std::make_shared<const std::vector<std::string>>(
      std::vector<std::string>{"sm__cycles_elapsed.avg"});
  burst->start_ns = {1};
  burst->end_ns = {monotonic_ns() + 1000};
  burst->counts = {1.0};
  Aggregator::instance().complete(std::shared_ptr<const CounterBurst>(std::move(burst)));
}

// A session whose files go to a folder of its own.
struct Recording {
  explicit Recording(bool has_timeline = true) {
    if (has_timeline) {
      StreamPlan plan;
      plan.path = folder.file("x");
      plan.formats = {TraceFormat::kChrome};
      plan.make_encoder = [](TraceFormat) -> std::unique_ptr<TraceEncoder> {
        return std::make_unique<TextEncoder>();
      };
      core->stream_timeline(std::move(plan));
    }
  }
  ~Recording() {
    if (core->is_live())
      core->remove();
  }
  void close_phases(bool has_trees, bool frees, int64_t interval_ns = 0) const {
    core->close_phases({folder.file("x"), has_trees, frees, interval_ns});
  }
  std::vector<EndedFile> end() const {
    core->end_recording();
    core->settle(soon(), true);
    return core->end_timeline({TraceFormat::kChrome}, 0, soon());
  }
  std::string trace(const std::string &part = "") const {
    return folder.content("x" + part + ".chrome_trace");
  }
  ScratchFolder folder;
  std::shared_ptr<Session> core = sessions().add(ContextSource::kShadow, false);
};

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST(what_a_session_records_stands_in_its_timeline) {
  Recording recording;
  recording.core->activate();
  run_kernel("in_timeline");
  CHECK_EQ(recording.end().size(), 1);
  CHECK(contains(recording.trace(), "node in_timeline\n"));
  CHECK(recording.core->stream_counts().events >= 1);
}

TEST(a_timeline_holds_the_tree_that_is_written_beside_it) {
  Recording recording;
  recording.close_phases(false, false);
  recording.core->activate();
  for (const char *name : {"first", "second"}) {
    run_kernel(name);
    recording.core->advance_phase();
  }
  recording.core->end_recording();
  recording.core->settle(soon(), true);
  std::vector<std::string> trees;
  for (uint32_t phase : {0u, 1u})
    trees.push_back(recording.core->encode(phase, FileFormat::kProton));
  recording.end();
  CHECK(recording.trace(".part_0").ends_with("end " + trees[0] + "\n"));
  CHECK(recording.trace(".part_1").ends_with("end " + trees[1] + "\n"));
}

TEST(a_session_that_never_was_active_has_an_empty_timeline) {
  Recording recording;
  CHECK_EQ(recording.end().size(), 1);
  CHECK(!contains(recording.trace(), "event"));
}

TEST(each_phase_has_its_own_file_and_one_that_is_over_is_ended) {
  Recording recording;
  recording.close_phases(false, false);
  recording.core->activate();
  run_kernel("first");
  recording.core->set_provenance("\x81\xa4when\xa5"
                                 "early");
  recording.core->advance_phase();
  run_kernel("second");
  CHECK(recording.core->settle(soon(), false));
  CHECK(contains(recording.folder.content("x.part_0.partial.chrome_trace"), "early"));
  CHECK(recording.folder.content("x.part_1.partial.chrome_trace").ends_with("tail"));
  recording.core->set_provenance("\x81\xa4when\xa4late");
  CHECK_EQ(recording.end().size(), 2);
  CHECK(contains(recording.trace(".part_0"), "node first\n"));
  CHECK(!contains(recording.trace(".part_0"), "second"));
  CHECK(contains(recording.trace(".part_0"), "early"));
  CHECK(contains(recording.trace(".part_1"), "late"));
  CHECK_EQ(recording.folder.entries(), 2);
}

TEST(a_phase_with_work_outstanding_is_not_ended) {
  Recording recording;
  recording.close_phases(false, false);
  recording.core->activate();
  run_kernel("never_completed", false);
  recording.core->advance_phase();
  CHECK(recording.core->settle(soon(), false));
  CHECK(!contains(recording.folder.content("x.part_0.partial.chrome_trace"), "end"));
}

TEST(the_current_phase_goes_on_empty_after_it_was_cleared) {
  Recording recording;
  recording.core->activate();
  run_kernel("cleared");
  recording.core->clear_phase(0, false);
  run_kernel("kept");
  recording.end();
  CHECK(contains(recording.trace(), "node kept\n"));
  CHECK(!contains(recording.trace(), "cleared"));
}

TEST(a_cleared_phase_leaves_no_file) {
  Recording recording;
  recording.close_phases(false, false);
  recording.core->activate();
  run_kernel("cleared");
  recording.core->advance_phase();
  recording.core->settle(soon(), false);
  recording.core->clear_phase(0, false);
  run_kernel("kept");
  CHECK_EQ(recording.end().size(), 1);
  CHECK_EQ(recording.folder.entries(), 1);
  CHECK(contains(recording.trace(".part_1"), "kept"));
}

TEST(scopes_that_are_open_at_the_end_are_shown) {
  Recording recording;
  recording.core->activate();
  OpenRange range = enter_scope_range("still_open");
  recording.end();
  CHECK(contains(recording.trace(), "node still_open\n"));
  exit_scope_range(range);
}

TEST(a_session_that_is_removed_leaves_nothing) {
  Recording recording;
  recording.core->activate();
  run_kernel("a");
  recording.core->settle(soon(), false);
  CHECK_EQ(recording.folder.entries(), 1);
  recording.core->remove();
  CHECK_EQ(recording.folder.entries(), 0);
}

TEST(trees_of_phases_are_written_and_freed) {
  Recording recording(false);
  recording.close_phases(true, true);
  recording.core->activate();
  for (int i = 0; i < 5; ++i) {
    run_kernel("k");
    recording.core->advance_phase();
  }
  recording.core->settle(soon(), false);
  CHECK_EQ(recording.folder.entries(), 5);
  CHECK(contains(recording.folder.content("x.part_4.proton"), "\xA1k"));
  CHECK((recording.core->live_phases() == std::vector<uint32_t>{5}));
  CHECK(recording.core->is_phase_complete(2));
  CHECK_EQ(recording.core->counts().records, 5);
}

TEST(phases_with_bursts_wait_until_these_are_over_and_joined) {
  Recording recording(false);
  recording.close_phases(true, true);
  Session &core = *recording.core;
  CHECK(!core.next_to_join());
  core.activate();
  run_kernel("without_burst");
  core.advance_phase();
  begin_burst();
  run_kernel("in_burst");
  core.advance_phase();
  CHECK(core.settle(soon(), false));
  CHECK(!core.next_to_join()); // its burst is open
  CHECK((core.live_phases() == std::vector<uint32_t>{1, 2}));
  end_burst();
  CHECK(core.next_to_join() == 1u);
  std::vector<JoinedBurst> bursts = core.take_bursts(1);
  CHECK_EQ(bursts.size(), 1u);
  CHECK(core.settle(soon(), false));
  core.set_metric_of_nodes("dram_busy (ns)", bursts[0].nodes, {7.0}, 1); // while it is joined
  CHECK(!core.next_to_join());
  CHECK(core.settle(soon(), false));
  CHECK((core.live_phases() == std::vector<uint32_t>{2}));
  CHECK(contains(recording.folder.content("x.part_1.proton"), "dram_busy"));
  begin_burst();
  run_kernel("never_joined");
  core.advance_phase();
  core.end_joins();
  CHECK(core.settle(soon(), false));
  CHECK((core.live_phases() == std::vector<uint32_t>{3}));
  end_burst();
}

TEST(the_oldest_of_too_many_phases_go_without_counters_and_are_counted) {
  Recording recording(false);
  recording.close_phases(true, true);
  Session &core = *recording.core;
  CHECK(!core.next_to_join());
  core.activate();
  begin_burst();
  for (size_t i = 0; i < Session::kMostUnjoined + 2; ++i) {
    run_kernel("k");
    core.advance_phase();
  }
  CHECK(core.losses().empty()); // the burst is open
  end_burst();
  run_kernel("k");
  core.advance_phase();
  CHECK(core.losses() ==
        (std::map<std::string, uint64_t>{{"counters of a phase that were not joined", 2}}));
  CHECK(core.settle(soon(), false));
  CHECK(contains(recording.folder.content("x.part_1.proton"), "\xA1k"));
  CHECK_EQ(core.live_phases().size(), Session::kMostUnjoined + 1);
  CHECK(core.next_to_join() == 2u);
  CHECK_EQ(core.take_bursts(2)[0].is_own.size(), Session::kMostUnjoined + 2);
  core.end_joins();
  CHECK(core.settle(soon(), false));
  CHECK_EQ(core.live_phases().size(), 1u);
}

TEST(a_program_waits_while_a_join_keeps_many_phases_from_a_timeline) {
  Recording recording;
  recording.close_phases(false, true);
  Session &core = *recording.core;
  CHECK(!core.next_to_join());
  core.activate();
  begin_burst();
  run_kernel("k");
  core.advance_phase();
  end_burst();
  CHECK(core.next_to_join() == 0u);
  CHECK_EQ(core.take_bursts(0).size(), 1u);
  for (size_t i = 1; i < PhaseCloser::kMostBehind; ++i) {
    run_kernel("k");
    core.advance_phase();
  }
  CHECK_EQ(core.stream_counts().waits, 0u);
  std::thread program([&] {
    run_kernel("k");
    core.advance_phase();
  });
  while (core.stream_counts().waits == 0)
    std::this_thread::yield();
  CHECK(!core.next_to_join()); // the first phase is joined
  program.join();
  core.end_joins();
  CHECK(core.settle(soon(), false));
  CHECK_EQ(core.live_phases().size(), 1u);
}

TEST(timelines_of_phases_get_their_names_while_the_session_goes_on) {
  Recording recording;
  recording.close_phases(false, true);
  recording.core->activate();
  for (int i = 0; i < 3; ++i) {
    run_kernel("k");
    recording.core->advance_phase();
  }
  run_kernel("last");
  recording.core->settle(soon(), false);
  for (const char *part : {".part_0", ".part_1", ".part_2"})
    CHECK(contains(recording.trace(part), "node k\n"));
  CHECK_EQ(recording.end().size(), 1);
  CHECK(contains(recording.trace(".part_3"), "node last\n"));
  CHECK_EQ(recording.folder.entries(), 4);
}

TEST(the_phase_advances_by_itself_where_something_was_recorded) {
  Recording recording(false);
  recording.close_phases(true, true, 1);
  recording.core->activate();
  run_kernel("k");
  for (int64_t deadline_ns = soon();
       recording.folder.entries() == 0 && monotonic_ns() < deadline_ns;)
    recording.core->settle(soon(), false);
  CHECK_EQ(recording.folder.entries(), 1);
  CHECK_EQ(recording.core->current_phase(), 1);
}

TEST(a_part_that_cannot_be_written_is_an_error_at_the_end) {
  Recording recording(false);
  recording.core->close_phases({"/proc/none/x", true, true, 0});
  recording.core->activate();
  run_kernel("k");
  recording.core->advance_phase();
  recording.core->settle(soon(), false);
  std::string message;
  try {
    recording.end();
  } catch (const Error &error) {
    message = error.what();
  }
  CHECK(contains(message, "x.part_0.proton"));
}

TEST(memory_stays_flat_over_a_thousand_phases) {
  Recording recording;
  recording.close_phases(false, true);
  recording.core->activate();
  size_t after_few = 0;
  for (int i = 0; i < 1000; ++i) {
    OpenRange range = enter_scope_range("scope of phase " + std::to_string(i));
    run_kernel("k");
    exit_scope_range(range);
    recording.core->advance_phase();
    if (i % 100 == 99)
      recording.core->settle(soon(), false);
    if (i == 99)
      after_few = live_name_count();
  }
  CHECK(live_name_count() <= after_few + 5);
  CHECK_EQ(recording.core->live_phases().size(), 1);
  CHECK_EQ(recording.folder.entries(), 1000);
}

TEST(partial_files_of_freed_phases_go) {
  Recording recording(false);
  recording.close_phases(true, true);
  PartialWriter::instance().add(recording.core, recording.folder.file("x"),
                                int64_t{3600} * 1'000'000'000);
  recording.core->activate();
  run_kernel("k");
  PartialWriter::instance().write();
  CHECK(recording.folder.content("x.partial.proton") != "");
  recording.core->advance_phase();
  recording.core->settle(soon(), false);
  PartialWriter::instance().write();
  CHECK_EQ(recording.folder.entries(), 1);
  CHECK(recording.folder.content("x.part_0.proton") != "");
  PartialWriter::instance().release(*recording.core, true);
}

TEST(a_forked_child_writes_no_timeline) {
  install_fork_handlers();
  Recording recording;
  recording.core->activate();
  run_kernel("before");
  pid_t child = fork();
  if (child == 0) {
    run_kernel("in_child");
    _exit(WriterThread::instance().push([] {}, 1) == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
  run_kernel("after");
  recording.end();
  CHECK(contains(recording.trace(), "node before\n"));
  CHECK(contains(recording.trace(), "node after\n"));
  CHECK(!contains(recording.trace(), "in_child"));
}
