
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "aggregate/consumer/aggregator.h"
#include "check.h"
#include "collector/cpu/cpu_collector.h"
#include "collector/cpu/op_stack.h"
#include "collector/recorded_session.h"
#include "tree_value.h"

using namespace proton;

namespace {

// Stands in for the kernel. Every thread counts the same.
struct FakeKernel {
  std::mutex mutex;
  std::map<int, uint64_t> open; ///< the count when it was opened, by descriptor
  uint64_t count = 0;
  int error = 0; ///< of opening
  int next_descriptor = 1000;
  int reads = 0, foreign_closes = 0;
  int interrupted = 0; ///< reads that a signal interrupts
  bool is_short = false;
  perf_event_attr last{};

  static FakeKernel *current;
  FakeKernel();
  ~FakeKernel();

  void add(uint64_t more) {
    std::lock_guard lock(mutex);
    count += more;
  }
  size_t opened() {
    std::lock_guard lock(mutex);
    return open.size();
  }
  int do_open(const perf_event_attr &attributes) {
    std::lock_guard lock(mutex);
    last = attributes;
    errno = error;
    if (error != 0)
      return -1;
    open[next_descriptor] = count;
    return next_descriptor++;
  }
  ssize_t do_read(int descriptor, void *buffer, size_t size) {
    std::lock_guard lock(mutex);
    ++reads;
    errno = interrupted > 0 ? EINTR : EBADF;
    if (interrupted-- > 0 || !open.contains(descriptor))
      return -1;
    uint64_t value = count - open[descriptor];
    if (is_short || size < sizeof value)
      return 0;
    std::memcpy(buffer, &value, sizeof value);
    return sizeof value;
  }
  int do_close(int descriptor) {
    std::lock_guard lock(mutex);
    foreign_closes += open.erase(descriptor) == 0 ? 1 : 0;
    return 0;
  }
};
FakeKernel *FakeKernel::current = nullptr;

const PerfCalls kFake{
    [](const perf_event_attr &attributes) { return FakeKernel::current->do_open(attributes); },
    [](int descriptor, void *buffer, size_t size) {
      return FakeKernel::current->do_read(descriptor, buffer, size);
    },
    [](int descriptor) { return FakeKernel::current->do_close(descriptor); }};

FakeKernel::FakeKernel() {
  current = this;
  set_perf_calls(&kFake);
}
FakeKernel::~FakeKernel() {
  set_perf_calls(nullptr);
  current = nullptr;
}

const PerfEvent kInstructions{"instructions", PERF_TYPE_HARDWARE, 1};
const PerfEvent kFaults{"page_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS};
constexpr const char *kUncounted = "a thread whose instructions could not be counted";

// A session that times scopes and counts, while it lives.
struct Counting {
  explicit Counting(const PerfEvent &event = kInstructions)
      : collector(Aggregator::instance(), 2, event) {
    collector.start();
    core = SessionRegistry::instance().add(ContextSource::kShadow, true);
    core->activate();
  }
  ~Counting() {
    stop();
    core->remove();
  }
  void stop() {
    if (!std::exchange(is_running_, false))
      return;
    collector.flush();
    core->deactivate();
    collector.stop();
  }
  /// "path=value " of each node that has one, in pre-order.
  std::string rows(const char *metric = "instructions") const {
    msgpack::Value root = tree_value(*core);
    std::string text;
    for (const msgpack::Value &child : root["children"].items)
      describe(child, "", metric, text);
    return text;
  }
  static void describe(const msgpack::Value &node, const std::string &above, const char *metric,
                       std::string &text) {
    std::string path = above + node["frame"]["name"].text;
    if (node["metrics"].entries.contains(metric))
      text += path + "=" + std::to_string(node["metrics"][metric].integer) + " ";
    for (const msgpack::Value &child : node["children"].items)
      describe(child, path + "/", metric, text);
  }
  CpuCollector collector;
  std::shared_ptr<Session> core;

private:
  bool is_running_ = true;
};

const char *add_name(const void *) { return "aten::add"; }

void touch_pages(size_t pages) {
  auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void *memory =
      mmap(nullptr, pages * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(memory, pages * size, MADV_NOHUGEPAGE);
  for (size_t i = 0; i < pages; ++i)
    static_cast<volatile char *>(memory)[i * size] = 1;
  munmap(memory, pages * size);
}

} // namespace

TEST(what_is_counted_belongs_to_the_innermost_open_range) {
  FakeKernel kernel;
  Counting counting;
  {
    kernel.add(7); // outside of any range
    ScopeGuard outer("outer");
    kernel.add(10);
    int token = 0;
    begin_op(&token, OpKind::kOperator, add_name);
    kernel.add(100);
    begin_kernel("kernel", -1);
    kernel.add(1000);
    end_kernel();
    end_op(&token);
    kernel.add(20);
  }
  counting.stop();
  CHECK_EQ(counting.rows(), "outer=30 outer/aten::add=100 outer/aten::add/kernel=1000 ");
}

TEST(operators_that_are_not_recorded_count_for_what_is_around_them) {
  FakeKernel kernel;
  Counting counting;
  int tokens[3] = {};
  for (int &token : tokens) { // two may nest
    begin_op(&token, OpKind::kOperator, add_name);
    kernel.add(5);
  }
  for (int i = 3; i-- > 0;)
    end_op(&tokens[i]);
  counting.stop();
  CHECK_EQ(counting.rows(), "aten::add=5 aten::add/aten::add=10 ");
}

TEST(a_range_that_nothing_ends_leaves_its_counts_to_the_one_around_it) {
  FakeKernel kernel;
  Counting counting;
  {
    ScopeGuard outer("outer");
    OpenRange inner = enter_range("inner", FrameKind::kOp);
    kernel.add(5);
    abandon_range(inner);
  }
  counting.stop();
  CHECK_EQ(counting.rows(), "outer=5 ");
}

TEST(a_probe_asks_for_user_space_alone_and_says_the_errno) {
  FakeKernel kernel;
  CHECK_EQ(PerfCounter::probe(kInstructions), 0);
  CHECK_EQ(kernel.last.exclude_kernel, 1);
  CHECK_EQ(kernel.last.exclude_hv, 1);
  CHECK_EQ(kernel.last.exclude_user, 0);
  CHECK_EQ(kernel.last.inherit, 0);
  CHECK_EQ(kernel.opened(), 0);
  kernel.error = EACCES;
  CHECK_EQ(PerfCounter::probe(kInstructions), EACCES);
}

TEST(an_interrupted_read_is_tried_again) {
  FakeKernel kernel;
  Counting counting;
  {
    ScopeGuard scope("scope");
    kernel.add(10);
    kernel.interrupted = 2;
  }
  counting.stop();
  CHECK_EQ(counting.rows(), "scope=10 ");
}

TEST(a_counter_that_cannot_be_read_is_closed_and_reported) {
  FakeKernel kernel;
  Counting counting;
  {
    ScopeGuard scope("scope");
    kernel.is_short = true; // as where another program has the counter to itself
  }
  kernel.is_short = false;
  for (int i = 0; i < 3; ++i)
    ScopeGuard scope("scope");
  CHECK_EQ(kernel.opened(), 0);
  counting.stop();
  CHECK_EQ(counting.core->losses()[kUncounted], 1);
}

TEST(counters_are_closed_where_threads_end_and_at_the_stop) {
  FakeKernel kernel;
  Counting counting;
  auto run = [&] { ScopeGuard scope("scope"); };
  std::thread(run).join();
  CHECK_EQ(kernel.opened(), 0);
  std::atomic<bool> is_open{false}, may_end{false};
  std::thread waiting([&] {
    run();
    is_open = true;
    is_open.notify_one();
    may_end.wait(false);
    run(); // after the stop: opens nothing
  });
  is_open.wait(false);
  run();
  CHECK_EQ(kernel.opened(), 2);
  counting.stop();
  CHECK_EQ(kernel.opened(), 0);
  may_end = true;
  may_end.notify_one();
  waiting.join();
  CHECK_EQ(kernel.opened(), 0);
  CHECK_EQ(kernel.foreign_closes, 0);
}

TEST(a_thread_without_a_counter_is_reported_once_and_a_new_start_tries_again) {
  FakeKernel kernel;
  kernel.error = EMFILE;
  {
    Counting counting;
    for (int i = 0; i < 3; ++i)
      ScopeGuard scope("scope");
    counting.stop();
    CHECK_EQ(counting.core->losses()[kUncounted], 1);
    CHECK_EQ(kernel.reads, 0);
  }
  kernel.error = 0;
  Counting counting;
  ScopeGuard scope("scope");
  CHECK_EQ(kernel.opened(), 1);
}

TEST(a_forked_child_closes_what_it_got_and_counts_itself) {
  FakeKernel kernel;
  Counting counting;
  std::atomic<bool> is_open{false}, may_end{false};
  std::thread other([&] {
    {
      ScopeGuard scope("scope");
    }
    is_open = true;
    is_open.notify_one();
    may_end.wait(false);
  });
  is_open.wait(false);
  {
    ScopeGuard scope("scope");
  }
  CHECK_EQ(kernel.opened(), 2);
  pid_t child = fork();
  if (child == 0) {
    bool is_closed = kernel.opened() == 0 && kernel.foreign_closes == 0;
    {
      ScopeGuard scope("scope");
    }
    bool is_counted = kernel.opened() == 1;
    counting.collector.stop();
    _exit(is_closed && is_counted && kernel.opened() == 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
  CHECK_EQ(kernel.opened(), 2); // the parent's
  may_end = true;
  may_end.notify_one();
  other.join();
}

TEST(threads_count_while_counting_stops_and_starts) {
  FakeKernel kernel;
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      while (!ends) {
        ScopeGuard scope("scope");
        std::thread([&] { ScopeGuard inside("inside"); }).join();
      }
    });
  for (int i = 0; i < 20; ++i) {
    Counting counting;
    while (kernel.opened() == 0)
      std::this_thread::yield();
  }
  ends = true;
  for (std::thread &thread : threads)
    thread.join();
  CHECK_EQ(kernel.opened(), 0);
  CHECK_EQ(kernel.foreign_closes, 0);
}

TEST(the_kernel_counts_page_faults_of_each_range_and_thread) {
  if (PerfCounter::probe(kFaults) != 0)
    return; // a sandbox without perf_event_open
  Counting counting(kFaults);
  auto run = [] {
    ScopeGuard outer("outer");
    touch_pages(20);
    ScopeGuard inner("inner");
    touch_pages(300);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back(run);
  for (std::thread &thread : threads)
    thread.join();
  run(); // alone: threads without a scope stand in that of this one
  counting.stop();
  std::string rows = counting.rows("page_faults");
  size_t inner = rows.find("outer/inner=");
  CHECK(rows.starts_with("outer="));
  // The program touches a few pages more, and sanitizers note each access in memory of their own.
  int64_t own = std::stoll(rows.substr(6)), nested = std::stoll(rows.substr(inner + 12));
  CHECK(own >= 9 * 20);
  CHECK(nested >= 9 * 300);
  CHECK(own < nested / 2);
}
