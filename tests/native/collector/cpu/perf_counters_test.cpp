#include "collector/cpu/perf_counters.h"

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
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
#include "support/error.h"

using namespace proton;

namespace {

// Stands in for the kernel. Every thread counts the same.
struct FakeKernel {
  struct Event {
    uint64_t config = 0;
    int leader = -1;
    uint64_t id = 0;
    uint64_t start = 0; ///< the count when it was opened
  };
  std::mutex mutex;
  std::map<int, Event> open;
  std::map<uint64_t, uint64_t> counts; ///< by config
  std::map<uint64_t, int> errors;      ///< of opening, by config
  uint64_t enabled_ns = 100, running_ns = 100;
  int next_descriptor = 1000;
  uint64_t next_id = 1;
  int reads = 0, foreign_reads = 0, foreign_closes = 0;
  int interrupted = 0; ///< reads that a signal interrupts
  bool is_short = false;
  perf_event_attr last{};

  static FakeKernel *current;
  FakeKernel();
  ~FakeKernel();

  void count(uint64_t config, uint64_t more) {
    std::lock_guard lock(mutex);
    counts[config] += more;
  }
  size_t opened() {
    std::lock_guard lock(mutex);
    return open.size();
  }
  int do_open(const perf_event_attr &attributes, int group) {
    std::lock_guard lock(mutex);
    last = attributes;
    auto error = errors.find(attributes.config);
    if (error != errors.end() || (group >= 0 && !open.contains(group))) {
      errno = error != errors.end() ? error->second : EBADF;
      return -1;
    }
    open[next_descriptor] = {attributes.config, group, next_id++, counts[attributes.config]};
    return next_descriptor++;
  }
  ssize_t do_read(int descriptor, void *buffer, size_t size) {
    std::lock_guard lock(mutex);
    ++reads;
    if (interrupted > 0) {
      --interrupted;
      errno = EINTR;
      return -1;
    }
    auto leader = open.find(descriptor);
    if (leader == open.end() || leader->second.id == 0) {
      ++foreign_reads;
      errno = EBADF;
      return -1;
    }
    std::vector<uint64_t> words{0, enabled_ns, running_ns};
    for (const auto &[number, event] : open)
      if (number == descriptor || event.leader == descriptor)
        words.push_back(counts[event.config] - event.start);
    words[0] = words.size() - 3;
    size_t bytes = words.size() * sizeof(uint64_t);
    if (is_short || bytes > size)
      return 0;
    std::memcpy(buffer, words.data(), bytes);
    return static_cast<ssize_t>(bytes);
  }
  int do_id(int descriptor, uint64_t &id) {
    std::lock_guard lock(mutex);
    auto found = open.find(descriptor);
    if (found == open.end() || found->second.id == 0) {
      errno = found == open.end() ? EBADF : ENOTTY;
      return -1;
    }
    id = found->second.id;
    return 0;
  }
  int do_close(int descriptor) {
    std::lock_guard lock(mutex);
    auto found = open.find(descriptor);
    foreign_closes += found == open.end() || found->second.id == 0 ? 1 : 0;
    if (found != open.end())
      open.erase(found);
    return 0;
  }
  /// The program closes everything, and gets a number again for a file of its own.
  void reuse_by_program() {
    std::lock_guard lock(mutex);
    int first = open.begin()->first;
    open.clear();
    open[first] = {};
  }
};
FakeKernel *FakeKernel::current = nullptr;

const PerfCalls kFake{
    [](const perf_event_attr &attributes, int group) {
      return FakeKernel::current->do_open(attributes, group);
    },
    [](int descriptor, void *buffer, size_t size) {
      return FakeKernel::current->do_read(descriptor, buffer, size);
    },
    [](int descriptor, uint64_t &id) { return FakeKernel::current->do_id(descriptor, id); },
    [](int descriptor) { return FakeKernel::current->do_close(descriptor); }};

FakeKernel::FakeKernel() {
  current = this;
  set_perf_calls(&kFake);
}
FakeKernel::~FakeKernel() {
  set_perf_calls(nullptr);
  current = nullptr;
}

const std::vector<PerfEvent> kTwo{{"instructions", PERF_TYPE_HARDWARE, 1},
                                  {"cpu_cycles", PERF_TYPE_HARDWARE, 0}};
const std::vector<PerfEvent> kFaults{{"page_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
                                     {"task_clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK}};

// A session that times scopes and counts, while it lives.
struct Counting {
  explicit Counting(std::vector<PerfEvent> events)
      : collector(Aggregator::instance(), 2, std::move(events)) {
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
  std::string rows(const char *metric) const {
    msgpack::Value file = msgpack::parse(core->encode(0, FileFormat::kHatchetMsgpack));
    std::string text;
    for (const msgpack::Value &child : file[0]["children"].items)
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

size_t open_descriptors() {
  auto all = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

bool kernel_counts_faults() {
  std::vector<int> errors = PerfCounters::probe(kFaults);
  return std::count(errors.begin(), errors.end(), 0) == static_cast<std::ptrdiff_t>(errors.size());
}

} // namespace

TEST(what_is_counted_belongs_to_the_innermost_open_range) {
  FakeKernel kernel;
  Counting counting(kTwo);
  {
    kernel.count(1, 7); // outside of any range
    ScopeGuard outer("outer");
    kernel.count(1, 10);
    int token = 0;
    begin_op(&token, OpKind::kOperator, add_name);
    kernel.count(1, 100);
    kernel.count(0, 50);
    begin_kernel("kernel", -1);
    kernel.count(1, 1000);
    end_kernel();
    end_op(&token);
    kernel.count(1, 20);
  }
  counting.stop();
  CHECK_EQ(counting.rows("instructions"),
           "outer=30 outer/aten::add=100 outer/aten::add/kernel=1000 ");
  CHECK_EQ(counting.rows("cpu_cycles"), "outer=0 outer/aten::add=50 outer/aten::add/kernel=0 ");
}

TEST(operators_that_are_not_recorded_count_for_what_is_around_them) {
  FakeKernel kernel;
  Counting counting(kTwo);
  int tokens[3] = {};
  for (int &token : tokens) { // two may nest
    begin_op(&token, OpKind::kOperator, add_name);
    kernel.count(1, 5);
  }
  for (int i = 3; i-- > 0;)
    end_op(&tokens[i]);
  counting.stop();
  CHECK_EQ(counting.rows("instructions"), "aten::add=5 aten::add/aten::add=10 ");
}

TEST(a_range_that_nothing_ends_leaves_its_counts_to_the_one_around_it) {
  FakeKernel kernel;
  Counting counting(kTwo);
  {
    ScopeGuard outer("outer");
    OpenRange inner = enter_range("inner", FrameKind::kOp);
    kernel.count(1, 5);
    abandon_range(inner);
  }
  counting.stop();
  CHECK_EQ(counting.rows("instructions"), "outer=5 ");
}

TEST(user_space_alone_is_counted_in_groups) {
  FakeKernel kernel;
  CHECK_EQ(PerfCounters::probe(kTwo)[1], 0);
  CHECK_EQ(kernel.last.exclude_kernel, 1);
  CHECK_EQ(kernel.last.exclude_hv, 1);
  CHECK_EQ(kernel.last.exclude_user, 0);
  CHECK_EQ(kernel.last.inherit, 0);
  CHECK((kernel.last.read_format & PERF_FORMAT_GROUP) != 0);
  CHECK_EQ(kernel.opened(), 0);
}

TEST(a_probe_says_the_errno_of_each_event) {
  for (int code : {ENOENT, EACCES, EPERM, ENOSYS, EMFILE, EINVAL, EBUSY, EOPNOTSUPP}) {
    FakeKernel kernel;
    kernel.errors = {{1, code}};
    std::vector<int> errors = PerfCounters::probe(kTwo);
    CHECK_EQ(errors[0], code);
    CHECK_EQ(errors[1], 0); // it leads the group then
    CHECK_EQ(kernel.opened(), 0);
  }
}

TEST(counts_are_scaled_where_the_group_did_not_always_count) {
  FakeKernel kernel;
  Counting counting(kTwo);
  {
    ScopeGuard scope("scope");
    kernel.count(1, 10);
    kernel.enabled_ns = 400;
    kernel.running_ns = 200;
  }
  CHECK_EQ(PerfCounters::instance().times().enabled_ns, 400);
  CHECK_EQ(PerfCounters::instance().times().running_ns, 200);
  counting.stop();
  CHECK_EQ(PerfCounters::instance().times().running_ns, 200);
  CHECK_EQ(counting.rows("instructions"), "scope=20 ");
}

TEST(a_group_that_never_counted_gives_no_numbers) {
  FakeKernel kernel;
  kernel.running_ns = 0;
  Counting counting(kTwo);
  {
    ScopeGuard scope("scope");
    kernel.count(1, 10);
  }
  counting.stop();
  CHECK_EQ(PerfCounters::instance().times().running_ns, 0);
  CHECK_EQ(counting.rows("instructions"), "scope=0 ");
}

TEST(an_interrupted_read_is_tried_again_and_a_short_one_is_part_of_the_next) {
  FakeKernel kernel;
  Counting counting(kTwo);
  {
    ScopeGuard outer("outer");
    kernel.count(1, 10);
    kernel.interrupted = 2;
    {
      ScopeGuard inner("inner");
      kernel.count(1, 100);
      kernel.is_short = true;
    }
    kernel.is_short = false;
  }
  counting.stop();
  CHECK_EQ(counting.rows("instructions"), "outer=110 outer/inner=0 ");
}

TEST(groups_are_closed_where_threads_end_and_at_the_stop) {
  FakeKernel kernel;
  Counting counting(kTwo);
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
  CHECK_EQ(kernel.opened(), 4);
  counting.stop();
  CHECK_EQ(kernel.opened(), 0);
  may_end = true;
  may_end.notify_one();
  waiting.join();
  CHECK_EQ(kernel.opened(), 0);
  CHECK_EQ(kernel.foreign_closes, 0);
}

TEST(a_thread_without_counters_is_counted_once_and_a_new_start_tries_again) {
  FakeKernel kernel;
  kernel.errors = {{0, EMFILE}}; // the second of the group
  {
    Counting counting(kTwo);
    for (int i = 0; i < 3; ++i)
      ScopeGuard scope("scope");
    CHECK_EQ(kernel.opened(), 0);
    counting.stop();
    auto losses = counting.core->losses();
    CHECK_EQ(losses["counters of a thread could not be opened or were closed"], 1);
    CHECK_EQ(kernel.reads, 0);
  }
  kernel.errors.clear();
  Counting counting(kTwo);
  ScopeGuard scope("scope");
  CHECK_EQ(kernel.opened(), 2);
}

TEST(half_of_the_descriptors_are_left_to_the_program) {
  FakeKernel kernel;
  Counting counting(kTwo);
  rlimit before{};
  CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low{10, before.rlim_max};
  CHECK_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  std::atomic<int> opened{0};
  std::atomic<bool> may_end{false};
  std::vector<std::thread> threads;
  for (int i = 1; i <= 4; ++i) {
    threads.emplace_back([&] {
      {
        ScopeGuard scope("scope");
      }
      ++opened;
      opened.notify_one();
      may_end.wait(false);
    });
    opened.wait(i - 1);
  }
  setrlimit(RLIMIT_NOFILE, &before);
  CHECK_EQ(kernel.opened(), 4); // two threads have a group, and half of one is none
  CHECK_EQ(PerfCounters::instance().take_failures(), 2);
  may_end = true;
  may_end.notify_all();
  for (std::thread &each : threads)
    each.join();
  std::thread([] { ScopeGuard scope("scope"); }).join(); // room that is free again is used
  CHECK_EQ(PerfCounters::instance().take_failures(), 0);
}

TEST(descriptors_that_the_program_took_over_are_neither_read_nor_closed) {
  FakeKernel kernel;
  Counting counting(kTwo);
  {
    ScopeGuard scope("scope");
  }
  kernel.reuse_by_program();
  for (int i = 0; i < 3; ++i)
    ScopeGuard scope("scope");
  CHECK_EQ(PerfCounters::instance().take_failures(), 1);
  counting.stop();
  CHECK_EQ(kernel.foreign_reads, 0);
  CHECK_EQ(kernel.foreign_closes, 0);
  CHECK_EQ(kernel.opened(), 1); // the program's
}

TEST(a_forked_child_closes_what_it_got_and_counts_itself) {
  FakeKernel kernel;
  Counting counting(kTwo);
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
  CHECK_EQ(kernel.opened(), 4);
  std::thread([] { ScopeGuard scope("scope"); }).join();
  CHECK(PerfCounters::instance().times().enabled_ns > 0);
  pid_t child = fork();
  if (child == 0) {
    PerfCounters::Times times = PerfCounters::instance().times();
    bool is_closed = kernel.opened() == 0 && kernel.foreign_closes == 0 && times.enabled_ns == 0;
    {
      ScopeGuard scope("scope");
    }
    bool is_counted = kernel.opened() == 2;
    counting.collector.stop();
    _exit(is_closed && is_counted && kernel.opened() == 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
  CHECK_EQ(kernel.opened(), 4); // the parent's
  may_end = true;
  may_end.notify_one();
  other.join();
}

TEST(lists_of_no_or_too_many_events_are_refused) {
  CHECK_THROWS(PerfCounters::instance().start({}), Error);
  std::vector<PerfEvent> many(kMostCounts + 1, kTwo[0]);
  CHECK_THROWS(PerfCounters::instance().start(many), Error);
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
    Counting counting(i % 2 ? kTwo : std::vector<PerfEvent>{kTwo[0]});
    while (kernel.opened() == 0)
      std::this_thread::yield();
  }
  ends = true;
  for (std::thread &thread : threads)
    thread.join();
  CHECK_EQ(kernel.opened(), 0);
  CHECK_EQ(kernel.foreign_reads, 0);
}

TEST(the_kernel_counts_page_faults_of_each_range_and_thread) {
  if (!kernel_counts_faults())
    return; // a sandbox without perf_event_open
  size_t before = open_descriptors();
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
  CHECK_EQ(open_descriptors(), before);
  std::string rows = counting.rows("page_faults");
  size_t inner = rows.find("outer/inner=");
  CHECK(rows.starts_with("outer="));
  // The program touches a few pages more, and sanitizers note each access in memory of their own.
  int64_t own = std::stoll(rows.substr(6)), nested = std::stoll(rows.substr(inner + 12));
  CHECK(own >= 9 * 20);
  CHECK(nested >= 9 * 300);
  CHECK(own < nested / 2);
}
