#include "collector/cpu/perf_counters.h"

#include <linux/perf_event.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <memory>

#include "support/error.h"
#include "support/fork_locks.h"

namespace proton {
namespace {

constexpr rlim_t kShare = 2; // one n-th of the descriptors that the program may open

int open_event(const perf_event_attr &attributes, int group) {
  return static_cast<int>(
      syscall(SYS_perf_event_open, &attributes, 0, -1, group, PERF_FLAG_FD_CLOEXEC));
}
int id_of_event(int descriptor, uint64_t &id) { return ioctl(descriptor, PERF_EVENT_IOC_ID, &id); }
constexpr PerfCalls kSystem{open_event, ::read, id_of_event, ::close};
std::atomic<const PerfCalls *> g_calls{&kSystem};
const PerfCalls &calls() noexcept { return *g_calls.load(std::memory_order_acquire); }

/// What a read of a group fills in.
struct Reading {
  uint64_t count = 0;
  uint64_t enabled_ns = 0;
  uint64_t running_ns = 0;
  std::array<uint64_t, kMostCounts> values{};
};

/// Sources are for ever, so that of equal lists of events there is one.
struct EventSource : CountSource {
  std::vector<PerfEvent> events;
};

/// An open event. Programs that close all descriptors close ours too, and may get the number for a
/// file of their own, which must neither be read nor closed.
struct Counter {
  int descriptor = -1;
  uint64_t id = 0;

  bool is_ours() const noexcept {
    uint64_t found = 0;
    return calls().id(descriptor, found) == 0 && found == id;
  }
};

/// The counters of one thread. Their owner opens and reads them, any thread may close them.
struct Group {
  Group() { counters.reserve(kMostCounts); } // never moves, so that a forked child can read it
  std::mutex mutex;
  std::vector<Counter> counters; ///< the leader first; empty: not open
  uint64_t serial = 0;           ///< of the start for which it was opened, or could not be
  Reading last;
};

struct Groups {
  Groups() { guard_across_fork(mutex, LockRank::kPerfGroups); }
  std::mutex mutex; ///< taken before that of a group
  std::vector<Group *> all;
  std::vector<std::unique_ptr<EventSource>> sources;
  PerfCounters::Times closed;
  std::atomic<const CountSource *> current{nullptr};
  std::atomic<uint64_t> serial{0};
  std::atomic<uint64_t> failures{0};
  std::atomic<size_t> open{0}; ///< events, of all threads
};
Groups &groups() {
  static auto *all = new Groups; // the target's threads may need it to the end
  return *all;
}

/// Whether one more may be opened: a program with many threads needs descriptors of its own.
bool has_room() noexcept {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 && groups().open < limit.rlim_cur / kShare;
}

void close_all(std::vector<Counter> &counters) noexcept {
  groups().open -= counters.size();
  for (; !counters.empty(); counters.pop_back()) // the leader last
    if (counters.back().is_ours())
      calls().close(counters.back().descriptor);
}

/// Opens an event of the calling thread as the next one of a group. Returns an errno, 0 for none.
int open_next(const PerfEvent &event, std::vector<Counter> &group) {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = event.type;
  attributes.config = event.config;
  attributes.read_format =
      PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  attributes.exclude_kernel = 1; // else perf_event_paranoid would have to be 1 or less
  attributes.exclude_hv = 1;
  if (!has_room())
    return EMFILE;
  group.reserve(group.size() + 1); // what may fail comes before there is a descriptor
  Counter fresh;
  fresh.descriptor = calls().open(attributes, group.empty() ? -1 : group[0].descriptor);
  if (fresh.descriptor < 0)
    return errno;
  if (calls().id(fresh.descriptor, fresh.id) != 0) {
    int code = errno;
    calls().close(fresh.descriptor);
    return code;
  }
  group.push_back(fresh);
  ++groups().open;
  return 0;
}

/// Opens the calling thread's group. False: an event failed, and nothing is open.
bool open_group(Group &group, const std::vector<PerfEvent> &events) noexcept {
  try {
    for (const PerfEvent &event : events)
      if (open_next(event, group.counters) != 0)
        break;
  } catch (...) { // no memory
  }
  if (group.counters.size() == events.size())
    return true;
  close_all(group.counters);
  return false;
}

bool read_group(const Group &group, Reading &reading) noexcept {
  size_t count = group.counters.size();
  auto expected = static_cast<ssize_t>(sizeof(uint64_t) * (3 + count));
  ssize_t got = 0;
  do
    got = calls().read(group.counters[0].descriptor, &reading, sizeof(reading));
  while (got < 0 && errno == EINTR);
  return got == expected && reading.count == count;
}

/// Closes the group and keeps its times. [its lock and that of all held]
void close_group(Group &group) noexcept {
  groups().closed.enabled_ns += group.last.enabled_ns;
  groups().closed.running_ns += group.last.running_ns;
  group.last = {};
  close_all(group.counters);
}

[[gnu::tls_model("initial-exec")]] thread_local Group *t_group = nullptr;
[[gnu::tls_model("initial-exec")]] thread_local bool t_has_ended = false;

/// In a forked child only this thread is left, and the counters count threads of the parent.
void start_child() noexcept {
  Groups &all = groups();
  for (Group *group : all.all) {
    close_all(group->counters);
    group->last = {};
    group->serial = 0;
  }
  all.open = 0;
  all.closed = {};
  all.failures.store(0, std::memory_order_relaxed);
  all.all.clear(); // the locks of other threads' groups may be held for ever
  if (t_group)
    all.all.push_back(t_group); // it had room for more
}

struct GroupOwner {
  ~GroupOwner() {
    t_group = nullptr;
    t_has_ended = true;
    if (!group)
      return;
    std::lock_guard all(groups().mutex);
    std::lock_guard own(group->mutex);
    std::erase(groups().all, group.get());
    close_group(*group);
  }
  std::unique_ptr<Group> group;
};
thread_local GroupOwner t_group_owner;

/// Null without memory, and while the thread ends.
Group *make_group() noexcept {
  if (t_has_ended)
    return nullptr;
  try {
    auto group = std::make_unique<Group>();
    std::lock_guard lock(groups().mutex);
    groups().all.push_back(group.get());
    t_group_owner.group = std::move(group);
    t_group = t_group_owner.group.get();
  } catch (...) { // nothing is counted on this thread
  }
  return t_group;
}

/// What was counted between two readings. Where the group shares the processor's counters, it
/// counts a part of the time: each interval with the chance of that part, and scaled by it.
void scale(const Reading &before, const Reading &now, size_t count, Counts &counts) noexcept {
  for (size_t i = 0; i < count; ++i) {
    auto value = static_cast<int64_t>(now.values[i] - before.values[i]);
    if (now.running_ns < now.enabled_ns)
      value = std::llround(static_cast<double>(value) * static_cast<double>(now.enabled_ns) /
                           static_cast<double>(now.running_ns));
    counts[i] = value;
  }
}

bool take(const CountSource &source, Counts &counts) noexcept {
  Group *group = t_group ? t_group : make_group();
  if (!group)
    return false;
  Groups &all = groups();
  std::lock_guard lock(group->mutex);
  if (all.current.load(std::memory_order_acquire) != &source)
    return false; // stopped: what is open will be closed, and nothing is opened any more
  uint64_t serial = all.serial.load(std::memory_order_acquire);
  if (group->counters.empty()) {
    if (group->serial == serial)
      return false; // it failed before
    group->serial = serial;
    if (!open_group(*group, static_cast<const EventSource &>(source).events)) {
      all.failures.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
  }
  if (!group->counters[0].is_ours()) {
    all.failures.fetch_add(1, std::memory_order_relaxed);
    close_all(group->counters);
    group->last = {};
    return false;
  }
  Reading now;
  if (!read_group(*group, now) || (now.running_ns == 0 && now.enabled_ns != 0))
    return false;
  scale(group->last, now, group->counters.size(), counts);
  group->last = now;
  return true;
}

bool is_same(const std::vector<PerfEvent> &one, const std::vector<PerfEvent> &other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](const PerfEvent &left, const PerfEvent &right) {
                      return left.metric == right.metric && left.type == right.type &&
                             left.config == right.config;
                    });
}

/// The source of these events.
const CountSource *source_of(const std::vector<PerfEvent> &events) {
  auto fresh = std::make_unique<EventSource>();
  fresh->take = take;
  fresh->events = events;
  for (const PerfEvent &event : events)
    fresh->metrics.push_back(number_of_counts(event.metric));
  Groups &all = groups();
  std::lock_guard lock(all.mutex);
  for (const auto &each : all.sources)
    if (is_same(each->events, events))
      return each.get();
  all.sources.push_back(std::move(fresh));
  return all.sources.back().get();
}

} // namespace

void set_perf_calls(const PerfCalls *replaced) noexcept {
  g_calls.store(replaced ? replaced : &kSystem, std::memory_order_release);
}

PerfCounters &PerfCounters::instance() {
  static auto *counters = new PerfCounters;
  return *counters;
}

std::vector<int> PerfCounters::probe(const std::vector<PerfEvent> &events) {
  std::vector<int> errors;
  std::vector<Counter> open;
  for (const PerfEvent &event : events)
    errors.push_back(open_next(event, open));
  close_all(open);
  return errors;
}

void PerfCounters::start(const std::vector<PerfEvent> &events) {
  if (events.empty() || events.size() > kMostCounts)
    throw Error(ErrorCode::kUsage, "give 1 to " + std::to_string(kMostCounts) + " events to count");
  Groups &all = groups();
  static const int handlers = pthread_atfork(nullptr, nullptr, start_child);
  if (handlers != 0)
    throw Error(ErrorCode::kUnavailable, "no memory to follow forks of the program");
  stop(); // groups of other events
  const CountSource *source = source_of(events);
  {
    std::lock_guard lock(all.mutex);
    all.closed = {};
    all.failures.store(0, std::memory_order_relaxed);
    all.serial.fetch_add(1, std::memory_order_release);
    all.current.store(source, std::memory_order_release);
  }
  set_count_source(source);
}

void PerfCounters::stop() noexcept {
  Groups &all = groups();
  set_count_source(nullptr);
  all.current.store(nullptr, std::memory_order_release);
  std::lock_guard lock(all.mutex);
  for (Group *group : all.all) {
    std::lock_guard owner(group->mutex);
    close_group(*group);
  }
}

PerfCounters::Times PerfCounters::times() {
  Groups &all = groups();
  std::lock_guard lock(all.mutex);
  Times sum = all.closed;
  for (Group *group : all.all) {
    std::lock_guard owner(group->mutex);
    sum.enabled_ns += group->last.enabled_ns;
    sum.running_ns += group->last.running_ns;
  }
  return sum;
}

uint64_t PerfCounters::take_failures() noexcept {
  return groups().failures.exchange(0, std::memory_order_relaxed);
}

} // namespace proton
