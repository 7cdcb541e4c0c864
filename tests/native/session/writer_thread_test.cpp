#include "session/writer_thread.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <semaphore>
#include <stdexcept>
#include <thread>

#include "check.h"
#include "support/clock.h"
#include "support/fork_locks.h"

using namespace proton;

namespace {

WriterThread &writer() { return WriterThread::instance(); }

constexpr int64_t kSoon_ns = 60'000'000'000;

struct Counting : WriterClient {
  void tick(int64_t) noexcept override { ticks.release(); }
  std::counting_semaphore<> ticks{0};
};

struct Client {
  Client() { writer().add(counting); }
  ~Client() { writer().remove(counting.get()); }
  std::shared_ptr<Counting> counting = std::make_shared<Counting>();
};

bool wait_for(uint64_t job) { return writer().wait_for(job, monotonic_ns() + kSoon_ns); }

} // namespace

TEST(without_a_client_nothing_is_done) {
  CHECK_EQ(writer().push([] {}, 1), 0);
  CHECK_EQ(writer().push_always([] {}), 0);
}

TEST(jobs_are_done_in_order_and_one_that_throws_stops_none) {
  Client client;
  std::string order;
  writer().push([&] { order += 'a'; }, 1);
  writer().push([] { throw std::runtime_error("no memory"); }, 1);
  CHECK(wait_for(writer().push_always([&] { order += 'b'; })));
  CHECK_EQ(order, "ab");
  CHECK_EQ(writer().queued_bytes(), 0);
}

TEST(jobs_that_wait_are_done_before_the_last_client_is_gone) {
  std::atomic<int> done{0};
  {
    Client client;
    for (int i = 0; i < 100; ++i)
      writer().push([&] { ++done; }, 1);
  }
  CHECK_EQ(done.load(), 100);
  CHECK_EQ(writer().push([] {}, 1), 0);
}

TEST(the_thread_starts_anew_for_a_later_client) {
  for (int i = 0; i < 20; ++i) {
    Client client;
    CHECK(wait_for(writer().push([] {}, 1)));
  }
}

TEST(a_full_queue_takes_what_cannot_be_left_out_only) {
  Client client;
  std::binary_semaphore gate(0);
  writer().push([&] { gate.acquire(); }, WriterThread::kMaxQueued_bytes);
  CHECK_EQ(writer().push([] {}, 1), 0);
  uint64_t always = writer().push_always([] {}, 1);
  CHECK(always != 0);
  CHECK(!writer().wait_for(always, monotonic_ns() + 1'000'000));
  gate.release();
  CHECK(wait_for(always));
}

TEST(a_job_larger_than_the_room_is_taken_alone) {
  Client client;
  CHECK(wait_for(writer().push([] {}, 2 * WriterThread::kMaxQueued_bytes)));
}

TEST(who_delivers_waits_until_there_is_room_again) {
  Client client;
  CHECK_EQ(writer().wait_for_room(), 0);
  std::binary_semaphore gate(0);
  writer().push([&] { gate.acquire(); }, WriterThread::kMaxQueued_bytes);
  std::thread opener([&] { gate.release(); });
  CHECK(writer().wait_for_room() > 0 || writer().queued_bytes() == 0);
  opener.join();
}

TEST(who_delivers_waits_a_second_at_most) {
  Client client;
  std::binary_semaphore gate(0);
  writer().push([&] { gate.acquire(); }, WriterThread::kMaxQueued_bytes);
  int64_t waited_ns = writer().wait_for_room();
  CHECK(waited_ns >= WriterThread::kPatience_ns);
  gate.release();
}

TEST(clients_are_called_again_and_again) {
  Client client;
  writer().wake();
  for (int i = 0; i < 3; ++i)
    client.counting->ticks.acquire();
}

#ifndef __SANITIZE_THREAD__ // it lets no child of a process with threads start one
TEST(a_forked_child_has_no_thread_and_may_start_its_own) {
  Client client;
  lock_for_fork();
  pid_t child = fork();
  if (child == 0) {
    unlock_in_child();
    writer().reset_after_fork();
    bool is_idle = writer().push([] {}, 1) == 0;
    Client own;
    bool works = wait_for(writer().push([] {}, 1));
    _exit(is_idle && works ? 0 : 1);
  }
  unlock_in_parent();
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
  CHECK(wait_for(writer().push([] {}, 1)));
}
#endif
