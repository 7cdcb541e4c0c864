#include "aggregate/consumer/drain_thread.h"

#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "aggregate/consumer/aggregator.h"
#include "check.h"
#include "context/thread/host_range.h"
#include "context/thread/thread_state.h"
#include "support/fork_locks.h"

using namespace proton;

namespace {

// Enough for the thread to be woken: several chunks of records.
void record_many() {
  for (uint32_t i = 0; i < 70 * RecordLog<HostEntry>::kChunkRecords; ++i) {
    OpenRange range = enter_range("op", FrameKind::kOp);
    exit_range(range, RangeKind::kOp, {0, 1, 1}, -1);
  }
}

SessionTree &session() {
  static SessionTree *session = new SessionTree(ContextSource::kShadow, 1, false);
  return *session;
}

uint64_t drained() { return Aggregator::Held().epochs().counts_of(session()).ranges; }

struct Listening {
  Listening() {
    SessionState now;
    now.generation = 1;
    now.active = true;
    now.epoch = Aggregator::Held().epochs().begin({{&session(), 0}});
    publish_session_state(now);
    set_drain_request(request_background_drain);
  }
  ~Listening() { publish_session_state({}); }
};

} // namespace

TEST(records_are_consumed_while_their_thread_does_something_else) {
  Listening listening;
  record_many();
  while (drained() == 0)
    std::this_thread::yield();
  CHECK(drained() > 0);
}

#ifndef __SANITIZE_THREAD__ // it lets no child of a process with threads start one
TEST(a_forked_child_consumes_with_a_thread_of_its_own) {
  Listening listening;
  record_many();
  lock_for_fork(); // as a process with sessions does: the thread may be at work
  pid_t child = fork();
  if (child == 0) {
    unlock_in_child();
    uint64_t before = drained(); // would wait for ever if the lock were left taken
    record_many();
    while (drained() == before)
      std::this_thread::yield();
    _exit(0);
  }
  unlock_in_parent();
  int status = 0;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif
