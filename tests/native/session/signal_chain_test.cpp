#include "session/signal_chain.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "check.h"

using namespace proton;

namespace {

std::atomic<int> g_first{0};
std::atomic<int> g_second{0};
void first(int) { ++g_first; }
void second(int) { ++g_second; }

// Reads what the handlers tell, and answers.
struct Pipe {
  Pipe() {
    CHECK_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    install_signal_chain(ends[1]);
  }
  ~Pipe() {
    remove_signal_chain();
    close(ends[0]);
    close(ends[1]);
  }
  // The next signal that was sent, 0 without one.
  int next() {
    char byte = 0;
    return read(ends[0], &byte, 1) == 1 ? byte : 0;
  }
  int ends[2] = {-1, -1};
};

// Answers every signal that the test raises, as the watching thread does.
struct Answers {
  ~Answers() {
    done.store(true);
    thread.join();
  }
  std::atomic<bool> done{false};
  std::thread thread{[this] {
    while (!done.load()) {
      signal_answered();
      std::this_thread::yield();
    }
  }};
};

void handle(int number, void (*handler)(int)) { signal(number, handler); }

} // namespace

TEST(a_signal_without_a_handler_is_told_and_does_not_kill) {
  Pipe sent;
  raise(SIGTERM);
  CHECK_EQ(sent.next(), SIGTERM);
  CHECK(!is_handled_by_process(SIGTERM));
}

TEST(a_handler_from_before_is_called_after_the_telling) {
  handle(SIGTERM, first);
  {
    Pipe sent;
    Answers answers;
    int before = g_first.load();
    raise(SIGTERM);
    CHECK_EQ(sent.next(), SIGTERM);
    CHECK_EQ(g_first.load(), before + 1);
    CHECK(is_handled_by_process(SIGTERM));
  }
  handle(SIGTERM, SIG_DFL);
}

TEST(a_handler_that_comes_later_is_chained_by_renewing) {
  Pipe sent;
  Answers answers;
  int before = g_second.load();
  handle(SIGHUP, second);
  raise(SIGHUP);
  CHECK_EQ(sent.next(), 0); // theirs alone, so far
  renew_signal_chain();
  renew_signal_chain(); // a second time changes nothing
  raise(SIGHUP);
  CHECK_EQ(sent.next(), SIGHUP);
  CHECK_EQ(g_second.load(), before + 2);
  handle(SIGHUP, SIG_DFL);
  renew_signal_chain();
  CHECK(!is_handled_by_process(SIGHUP));
}

TEST(an_ignored_signal_is_left_ignored) {
  handle(SIGHUP, SIG_IGN);
  {
    Pipe sent;
    raise(SIGHUP);
    CHECK_EQ(sent.next(), 0);
  }
  CHECK(signal(SIGHUP, SIG_DFL) == SIG_IGN);
}

TEST(removing_restores_what_stood_behind) {
  handle(SIGINT, first);
  {
    Pipe sent;
  }
  CHECK(signal(SIGINT, SIG_DFL) == first);
  {
    Pipe sent;
  }
  CHECK(signal(SIGTERM, SIG_DFL) == SIG_DFL);
}

TEST(removing_keeps_a_handler_that_was_installed_over_ours) {
  {
    Pipe sent;
    handle(SIGTERM, second);
  }
  CHECK(signal(SIGTERM, SIG_DFL) == second);
}

TEST(errno_survives_the_handler) {
  Pipe sent;
  errno = ENOTTY;
  raise(SIGTERM);
  CHECK_EQ(errno, ENOTTY);
}

TEST(a_child_that_shares_our_handler_dies_by_the_signal_and_tells_nobody) {
  Pipe sent;
  std::fflush(stdout);
  pid_t child = fork(); // without the handlers that restore the child's own
  if (child == 0) {
    raise(SIGTERM);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  CHECK_EQ(sent.next(), 0);
}
