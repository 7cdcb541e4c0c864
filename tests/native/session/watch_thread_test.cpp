#include "session/watch_thread.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "check.h"
#include "scratch_folder.h"
#include "session/fork_handlers.h"
#include "session/output_guard.h"
#include "session/session_registry.h"
#include "session/signal_chain.h"

using namespace proton;

namespace {

// Runs the body in a child that may be ended, and returns what `waitpid` says of it.
template <typename Body> int status_of(Body body) {
  std::fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    body();
    _exit(99);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

void watch(Ending ending, const std::string &path) {
  SessionRegistry &sessions = SessionRegistry::instance();
  std::shared_ptr<Session> session = sessions.add(ContextSource::kShadow, false);
  session->activate();
  OutputGuard::instance().protect(session, {path, true});
  start_watch({0, ending});
}

[[noreturn]] void sit() {
  for (;;)
    pause();
}

} // namespace

TEST(a_signal_writes_and_ends_with_its_exit_code) {
  ScratchFolder folder;
  int status = status_of([&] {
    watch(Ending::kExitCode, folder.file("x"));
    raise(SIGTERM);
    sit();
  });
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM);
  CHECK(!folder.content("x.proton").empty());
}

TEST(a_signal_writes_and_ends_by_itself) {
  ScratchFolder folder;
  int status = status_of([&] {
    watch(Ending::kSignal, folder.file("x"));
    raise(SIGHUP);
    sit();
  });
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP);
  CHECK(!folder.content("x.proton").empty());
}

TEST(a_program_that_a_signal_woke_does_not_end_before_it) {
  ScratchFolder folder;
  int status = status_of([&] {
    watch(Ending::kExitCode, folder.file("x"));
    raise(SIGTERM);
    wait_for_answers();
    _exit(5);
  });
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM);
  CHECK(!folder.content("x.proton").empty());
}

TEST(answered_signals_are_not_waited_for) {
  int status = status_of([] {
    signal(SIGTERM, [](int) {});
    start_watch({});
    raise(SIGTERM);
    wait_for_answers();
    stop_watch();
    wait_for_answers();
    _exit(5);
  });
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
}

TEST(a_second_interrupt_that_comes_at_once_does_not_end_the_process) {
  int status = status_of([] {
    signal(SIGINT, [](int) {});
    start_watch({});
    raise(SIGINT);
    raise(SIGINT);
    stop_watch(); // the thread has read both
    _exit(5);
  });
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
}

TEST(stopping_restores_the_handlers_and_starting_again_works) {
  for (int i = 0; i < 3; ++i) {
    start_watch({});
    CHECK(is_watching());
    stop_watch();
    CHECK(!is_watching());
  }
  CHECK(signal(SIGTERM, SIG_DFL) == SIG_DFL);
}

TEST(a_forked_child_is_not_watched) {
  install_fork_handlers();
  ScratchFolder folder;
  watch(Ending::kExitCode, folder.file("parent"));
  int status = status_of([&] {
    if (is_watching() || OutputGuard::instance().count() != 0)
      _exit(1);
    raise(SIGTERM);
  });
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  CHECK(is_watching());
  stop_watch();
  CHECK_EQ(folder.entries(), 0);
}

#ifndef __SANITIZE_THREAD__ // it lets no child of a process with threads start one
TEST(a_forked_child_may_start_a_watch_of_its_own) {
  install_fork_handlers();
  ScratchFolder folder;
  watch(Ending::kExitCode, folder.file("parent"));
  int status = status_of([&] {
    watch(Ending::kExitCode, folder.file("child"));
    raise(SIGTERM);
    sit();
  });
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM);
  CHECK(!folder.content("child.proton").empty());
  CHECK(is_watching());
  stop_watch();
  CHECK_EQ(folder.entries(), 1);
}
#endif
