#include "session/termination.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "check.h"
#include "record/record_sink.h"
#include "scratch_folder.h"
#include "session/partial_writer.h"
#include "session/session_registry.h"

using namespace proton;

namespace {

constexpr int64_t kNever_ns = 3'600'000'000'000; // between two rounds of the thread
constexpr int kPatience_s = 60;                  // only a hang meets it

/// Runs this in a child with a session that recorded a kernel. Returns how it ended.
int end_of_child(const ScratchFolder &folder, const std::function<void()> &run) {
  pid_t child = fork();
  if (child == 0) {
    alarm(kPatience_s);
    auto session = SessionRegistry::instance().add(ContextSource::kShadow, false);
    session->activate();
    PartialWriter::instance().add(session, folder.file("x"), kNever_ns);
    KernelRecord kernel;
    kernel.correlation_id = next_correlation_id();
    kernel.name = "k";
    kernel.end_ns = 10;
    Aggregator::instance().launched(kernel.correlation_id);
    Aggregator::instance().complete({&kernel, 1});
    run();
    _exit(7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

void wait_for_the_end() {
  for (;;)
    pause();
}

} // namespace

TEST(a_process_that_is_terminated_writes_first_and_ends_by_the_signal) {
  ScratchFolder folder;

  int status = end_of_child(folder, [] {
    CHECK(write_when_terminated());
    kill(getpid(), SIGTERM);
    wait_for_the_end();
  });

  CHECK(WIFSIGNALED(status));
  CHECK_EQ(WTERMSIG(status), SIGTERM);
  CHECK_EQ(folder.entries(), 1);
}

TEST(a_program_that_handles_the_signal_keeps_its_way) {
  ScratchFolder folder;

  int status = end_of_child(folder, [] {
    signal(SIGTERM, [](int) { _exit(3); });
    CHECK(!write_when_terminated());
    kill(getpid(), SIGTERM);
    wait_for_the_end();
  });

  CHECK(WIFEXITED(status));
  CHECK_EQ(WEXITSTATUS(status), 3);
  CHECK_EQ(folder.entries(), 0);
}

#ifndef __SANITIZE_THREAD__ // it hands no signal to a child of a process with threads
TEST(a_forked_child_ends_by_the_signal_at_once) {
  ScratchFolder folder;

  int status = end_of_child(folder, [] {
    CHECK(write_when_terminated());
    pid_t forked = fork();
    if (forked == 0) {
      kill(getpid(), SIGTERM);
      wait_for_the_end();
    }
    int inner = 0;
    waitpid(forked, &inner, 0);
    _exit(WIFSIGNALED(inner) ? WTERMSIG(inner) : 0);
  });

  CHECK_EQ(WEXITSTATUS(status), SIGTERM);
  CHECK_EQ(folder.entries(), 0);
}
#endif
