#include "session/partial_writer.h"

#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "check.h"
#include "record/device.h"
#include "scratch_folder.h"
#include "session/session_registry.h"
#include "support/clock.h"
#include "tree_value.h"
#include "writer/file/flock_double.h"
#include "writer/file/output_file.h"

using namespace proton;

namespace {

constexpr int64_t kNever_ns = 3'600'000'000'000; // between two rounds of the thread

PartialWriter &partials() { return PartialWriter::instance(); }

// An active session whose files go to a folder of its own.
struct Recording {
  Recording() {
    core->activate();
    partials().add(core, folder.file("x"), kNever_ns);
  }
  ~Recording() {
    partials().release(*core, false);
    core->remove();
  }
  void record(int64_t duration_ns = 10) const {
    KernelRecord kernel;
    kernel.correlation_id = next_correlation_id();
    kernel.name = "k";
    kernel.end_ns = duration_ns;
    Aggregator::instance().launched(kernel.correlation_id);
    Aggregator::instance().complete({&kernel, 1});
  }
  ScratchFolder folder;
  std::shared_ptr<Session> core = SessionRegistry::instance().add(ContextSource::kShadow, false);
};

} // namespace

TEST(nothing_is_flushed_before_something_was_recorded) {
  Recording recording;
  CHECK(partials().write().files.empty());
  CHECK_EQ(recording.folder.entries(), 0);
}

TEST(a_flush_writes_one_file_and_the_next_one_only_what_is_new) {
  Recording recording;
  recording.record();
  PartialWriter::Report first = partials().write();
  CHECK((first.files == std::vector{recording.folder.file("x.partial.proton")}));
  CHECK(partials().write().files.empty());
  recording.record();
  CHECK_EQ(partials().write().files.size(), 1);
  CHECK_EQ(recording.folder.entries(), 1);
}

TEST(ended_phases_are_flushed_once) {
  Recording recording;
  recording.record();
  recording.core->advance_phase();
  recording.record();
  CHECK_EQ(partials().write().files.size(), 2);
  recording.record();
  CHECK(
      (partials().write().files == std::vector{recording.folder.file("x.part_1.partial.proton")}));
}

TEST(the_end_of_a_session_removes_what_was_flushed_unless_writing_failed) {
  Recording recording;
  recording.record();
  partials().write();
  partials().release(*recording.core, false);
  CHECK_EQ(recording.folder.entries(), 1);
  partials().add(recording.core, recording.folder.file("x"), kNever_ns);
  partials().write();
  partials().release(*recording.core, true);
  CHECK_EQ(recording.folder.entries(), 0);
}

TEST(two_sessions_of_one_name_flush_to_a_file_each_and_remove_their_own) {
  Recording first, second;
  partials().add(second.core, first.folder.file("x"), kNever_ns);
  for (int time = 0; time < 2; ++time) {
    first.record();
    second.record();
    partials().write();
  }
  CHECK_EQ(first.folder.entries(), 2);
  CHECK(is_locked(first.folder.file("x.partial.proton")));
  partials().release(*second.core, true);
  CHECK_EQ(first.folder.entries(), 1);
  CHECK(is_locked(first.folder.file("x.partial.proton")));
}

TEST(a_phase_that_is_written_whole_leaves_no_partial_file) {
  Recording recording;
  recording.record();
  recording.core->advance_phase();
  recording.record();
  partials().write();
  partials().phase_written(*recording.core, 0);
  CHECK_EQ(recording.folder.entries(), 1);
  CHECK(recording.folder.content("x.part_1.partial.proton") != "");
}

TEST(a_whole_file_of_another_session_leaves_what_is_flushed) {
  Recording recording;
  recording.record();
  partials().write();
  write_file(recording.folder.file("x.proton"), "of another");
  CHECK(recording.folder.content("x.partial.proton") != "");
}

TEST(a_forked_child_keeps_no_lock_on_what_was_flushed) {
  install_fork_handlers();
  Recording recording;
  recording.record();
  partials().write();
  int ready[2], over[2];
  for (int *ends : {ready, over})
    CHECK_EQ(pipe(ends), 0);
  std::fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    close(over[1]);
    char byte = 0;
    bool is_right = partials().write().files.empty() && write(ready[1], "", 1) == 1;
    _exit(is_right && read(over[0], &byte, 1) == 0 ? 0 : 1);
  }
  char byte = 0;
  CHECK_EQ(read(ready[0], &byte, 1), 1);
  CHECK(is_locked(recording.folder.file("x.partial.proton")));
  partials().release(*recording.core, false);
  CHECK(!is_locked(recording.folder.file("x.partial.proton")));
  CHECK_EQ(recording.folder.entries(), 1);
  for (int end : {over[1], over[0], ready[0], ready[1]})
    close(end);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
}

TEST(nothing_is_flushed_while_python_writes) {
  Recording recording;
  recording.record();
  partials().begin_final(*recording.core);
  CHECK(partials().write().files.empty());
}

TEST(a_session_that_cannot_be_written_does_not_keep_the_others_from_it) {
  Recording first, second;
  first.record();
  partials().add(first.core, "/proc/none/x", kNever_ns);
  PartialWriter::Report report = partials().write();
  CHECK_EQ(report.errors.size(), 1);
  CHECK_EQ(second.folder.entries(), 1);
}

TEST(the_thread_writes_as_long_as_there_is_a_session) {
  Recording recording;
  partials().release(*recording.core, true);
  partials().add(recording.core, recording.folder.file("x"), 1'000'000);
  recording.record();
  while (recording.folder.entries() == 0)
    std::this_thread::yield();
  partials().release(*recording.core, true);
  CHECK_EQ(recording.folder.entries(), 0);
}

TEST(a_busy_aggregator_is_not_waited_for_past_the_deadline) {
  Recording recording;
  Aggregator::Held held;
  SessionCopy copy;
  CHECK(!recording.core->try_copy(monotonic_ns(), {}, copy));
  CHECK(copy.phases.empty());
}

TEST(a_copy_is_not_changed_by_what_is_recorded_later) {
  Recording recording;
  recording.record();
  SessionCopy copy;
  CHECK(recording.core->try_copy(monotonic_ns(), {}, copy));
  CHECK_EQ(copy.phases.size(), 1);
  size_t nodes = copy.phases[0].tree.nodes().size();
  std::string before = tree_text(TreeValue(copy.phases[0].tree).root());
  for (int i = 0; i < 200; ++i)
    recording.record(1000 + i); // past the raw samples of a distribution
  CHECK(recording.core->try_copy(monotonic_ns(), {}, copy));
  CHECK_EQ(copy.phases[0].tree.nodes().size(), nodes);
  CHECK_EQ(tree_text(TreeValue(copy.phases[0].tree).root()), before);
  CHECK_EQ(
      encode_profile(copy.phases[1].tree, DeviceTable::instance().list(), {}, FileFormat::kProton)
          .size(),
      recording.core->encode(0, FileFormat::kProton).size());
}
