// Bursts of hardware counters on the double of libcupti: what a session gets of them, and that a
// run goes on without them whatever fails.
#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <set>

#include "check.h"
#include "collector/cupti/control/cupti_session.h"
#include "scratch_folder.h"
#include "support/clock.h"

using namespace proton;

namespace {

constexpr int64_t kPatienceNs = int64_t{60} * 1'000'000'000;
constexpr uint64_t kKernelNs = 20'000;
const std::vector<std::string> kMetrics = {"sm__cycles_elapsed.avg", "sm__cycles_active.avg",
                                           "dram__throughput.avg.pct_of_peak_sustained_elapsed"};

/// The processes that sample see its kernels.
class SharedGpu {
public:
  SharedGpu() {
    setenv("FAKE_CUPTI_GPU", folder_.file("gpu").c_str(), 1);
    setenv("FAKE_CUPTI_CLOCK", "real", 1);
    setenv("FAKE_CUDA_DEVICES", "2", 1);
  }

private:
  ScratchFolder folder_;
};

CuptiOptions counter_options(std::vector<std::vector<std::string>> sets = {kMetrics}) {
  static const SharedGpu gpu; // not in other tests of the executable
  fake_cupti_real_clock();
  CuptiOptions options = double_options();
  options.counters.sets = std::move(sets);
  options.counters.burst_ms = 2;
  options.counters.pause_ms = 5;
  return options;
}

/// Numbers that are names in a folder of /proc.
std::vector<int> numbers_in(const std::string &folder) {
  std::vector<int> numbers;
  DIR *opened = opendir(folder.c_str());
  while (const dirent *entry = readdir(opened))
    if (int number = std::atoi(entry->d_name); number > 0)
      numbers.push_back(number);
  closedir(opened);
  return numbers;
}

/// A process that samples for this one, as the recorder starts it, and our end of its socket.
class Sampler {
public:
  explicit Sampler(std::vector<std::string> command) {
    int ends[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    std::vector<char *> words;
    for (std::string &word : command)
      words.push_back(word.data());
    words.push_back(nullptr);
    process_ = fork();
    if (process_ == 0) {
      dup2(ends[1], STDIN_FILENO);
      execv(words[0], words.data());
      _exit(127);
    }
    close(ends[1]);
    socket = ends[0];
  }
  ~Sampler() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  Sampler(const Sampler &) = delete;
  Sampler &operator=(const Sampler &) = delete;
  void kill_it() const { kill(process_, SIGKILL); }
  /// Whether it ends by itself.
  bool ends() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOWAIT) == 0;
  }

  int socket = -1;

private:
  pid_t process_ = -1;
};

std::vector<std::string> counting() { return {std::getenv("COUNTER_SAMPLING")}; }
std::vector<std::string> counting_with(const std::string &variable) {
  return {"/usr/bin/env", variable, std::getenv("COUNTER_SAMPLING")};
}
std::vector<std::string> failing(const std::string &fault) {
  return counting_with("FAKE_CUPTI_FAIL=" + fault);
}

/// A session that counts.
struct CountedSession {
  explicit CountedSession(const CuptiOptions &options = counter_options(),
                          std::vector<std::string> command = counting())
      : sampler(std::move(command)), session(options) {
    session.collector.start_counters(sampler.socket);
  }
  Sampler sampler;
  CuptiSession session;
};

/// What the calling process holds of this kind, e.g. "socket:". Takes no memory: a forked child,
/// whose parent had other threads, may ask.
size_t descriptors_of(const char *kind) {
  size_t count = 0;
  for (int descriptor = 0; descriptor < 1024; ++descriptor) {
    char link[64], target[256] = {};
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    if (readlink(link, target, sizeof target - 1) > 0)
      count += std::strstr(target, kind) != nullptr ? 1 : 0;
  }
  return count;
}

void run_kernel(const char *name, uint32_t device) {
  FakeLaunch launch;
  launch.name = name;
  launch.duration_ns = kKernelNs;
  launch.device = device;
  launch.context = device + 1;
  fake_cupti_launch_as(&launch);
}

/// Launches one kernel after the other, as fast as the device runs them, until it holds.
template <typename Condition> bool run_until(Condition holds, uint32_t devices = 1) {
  int64_t end_ns = monotonic_ns() + kPatienceNs;
  while (!holds() && monotonic_ns() < end_ns) {
    int64_t next_ns = monotonic_ns() + static_cast<int64_t>(kKernelNs) * 2 * devices;
    for (uint32_t device = 0; device < devices; ++device)
      run_kernel("copy_kernel", device);
    while (monotonic_ns() < next_ns) {
    }
  }
  return holds();
}

CounterFacts facts_of(const CuptiSession &session) { return *session.collector.facts().counters; }

/// Runs until some bursts came, and returns those with kernels beside them: a thread that waits for
/// a processor may launch nothing in one of them.
std::vector<JoinedBurst> run_for_bursts(CuptiSession &session) {
  CHECK(run_until([&] { return facts_of(session).bursts >= 8; }));
  session.stop();
  std::vector<JoinedBurst> bursts = session.core->take_bursts(0);
  CHECK(!bursts.empty());
  return bursts;
}

/// Runs until the sampler has given up, or has had a burst.
CounterFacts facts_after(CuptiSession &session) {
  run_until([&] {
    CounterFacts facts = facts_of(session);
    return facts.bursts > 0 || facts.refused_devices > 0 || !facts.error.empty();
  });
  session.stop();
  return facts_of(session);
}

struct Fault {
  const char *fault;
  const char *advice;
};

} // namespace

TEST(samples_say_when_the_kernels_beside_them_ran) {
  CountedSession counted;
  CuptiSession &session = counted.session;
  std::vector<JoinedBurst> bursts = run_for_bursts(session);

  CHECK(session.core->counter_metrics() == kMetrics);
  CHECK_EQ(session.collector.facts().clock, "vendor");
  double sampled_ns = 0;
  double active_ns = 0;
  double kernels_ns = 0;
  double dram_ns = 0;
  for (const JoinedBurst &joined : bursts) {
    const CounterBurst &burst = *joined.burst;
    CHECK_EQ(burst.counts.size(), burst.start_ns.size() * kMetrics.size());
    CHECK(std::is_sorted(burst.start_ns.begin(), burst.start_ns.end()));
    for (size_t i = 0; i < burst.start_ns.size(); ++i) {
      sampled_ns += burst.counts[3 * i];
      active_ns += burst.counts[3 * i + 1];
      dram_ns += burst.counts[3 * i + 2] / 100 * burst.counts[3 * i];
    }
    for (size_t i = 0; i < joined.nodes.size(); ++i) {
      int64_t inside_ns = std::min(joined.kernel_end_ns[i], burst.end_ns.back()) -
                          std::max(joined.kernel_start_ns[i], burst.start_ns.front());
      CHECK(inside_ns > 0);
      kernels_ns += static_cast<double>(inside_ns);
    }
  }
  CHECK(sampled_ns > 0 && active_ns > 0);
  CHECK(std::abs(kernels_ns / active_ns - 1) < 0.02); // both are on one clock
  CHECK(std::abs(dram_ns / active_ns - 0.8) < 0.001);
  CHECK(counted.sampler.ends()); // and nothing is left on
}

TEST(every_device_that_is_used_is_sampled) {
  CountedSession counted;
  CuptiSession &session = counted.session;
  CHECK(run_until([&] { return facts_of(session).devices.size() == 2; }, 2));
  uint64_t before = facts_of(session).bursts;
  CHECK(run_until([&] { return facts_of(session).bursts >= before + 16; }, 2));
  session.stop();
  std::set<int32_t> devices;
  for (const JoinedBurst &joined : session.core->take_bursts(0))
    devices.insert(joined.device);
  CHECK_EQ(devices.size(), 2u);
}

TEST(a_refusal_is_explained_and_the_run_goes_on) {
  for (Fault each : {Fault{"cuptiProfilerInitialize=15", "the CUDA driver did not start"},
                     Fault{"cuptiDeviceGetChipName=999", "cuptiDeviceGetChipName"},
                     Fault{"cuptiProfilerHostInitialize=46", "does not know this GPU"},
                     Fault{"cuptiProfilerHostGetConfigImage=999", "GetConfigImage"},
                     Fault{"cuptiPmSamplingEnable=26", "another process samples this GPU"},
                     Fault{"cuptiPmSamplingEnable=35", "NVreg_RestrictProfilingToAdminUsers=0"},
                     Fault{"cuptiPmSamplingEnable=33", "virtual GPU does not allow profiling"},
                     Fault{"cuptiPmSamplingEnable=40", "virtual GPU does not allow profiling"},
                     Fault{"cuptiPmSamplingSetConfig=43", "MIG slice cannot be profiled"},
                     Fault{"cuptiPmSamplingSetConfig=1", "cuptiPmSamplingSetConfig"},
                     Fault{"cuptiPmSamplingGetCounterDataSize=999", "GetCounterDataSize"},
                     Fault{"cuptiPmSamplingCounterDataImageInitialize=999", "ImageInitialize"}}) {
    CountedSession counted(counter_options(), failing(each.fault));
    CuptiSession &session = counted.session;
    CounterFacts facts = facts_after(session);
    CHECK(holds(facts.error, each.advice));
    CHECK_EQ(facts.bursts, 0u);
    CHECK_EQ(facts.refused_devices, 1u);
    CHECK(session.counts().is_complete() && session.counts().records > 0);
    CHECK_EQ(session.lost(), 0u);
    CHECK(session.core->take_bursts(0).empty());
  }
}

TEST(a_gpu_that_the_other_process_does_not_see_is_refused) {
  CountedSession counted(counter_options(), counting_with("FAKE_CUDA_DEVICES=1"));
  CuptiSession &session = counted.session;
  CHECK(run_until([&] { return facts_of(session).refused_devices > 0; }, 2));
  CHECK(run_until([&] { return facts_of(session).bursts > 0; }, 2));
  session.stop();
  CHECK(holds(facts_of(session).error, "does not see the GPU"));
  CHECK(facts_of(session).devices == std::vector<int32_t>{0});

  CountedSession none(counter_options(), counting_with("FAKE_CUDA_DEVICES=0"));
  CHECK(holds(facts_after(none.session).error, "cuInit answers 100"));
}

TEST(a_device_whose_bursts_fail_is_given_up_after_some) {
  for (const char *function : {"cuptiPmSamplingStart", "cuptiPmSamplingStop",
                               "cuptiPmSamplingDecodeData", "cuptiPmSamplingGetCounterDataInfo"}) {
    CountedSession counted(counter_options(), failing(std::string(function) + "=26"));
    CuptiSession &session = counted.session;
    CHECK(run_until([&] { return facts_of(session).refused_devices == 1; }));
    CounterFacts facts = facts_after(session);
    CHECK_EQ(facts.lost_bursts, 3u);
    CHECK(holds(facts.error, "another process samples this GPU"));
    CHECK(session.core->take_bursts(0).empty());
  }
}

TEST(one_failed_burst_is_counted_and_the_next_ones_come) {
  CountedSession counted(counter_options(), failing("cuptiPmSamplingStart@2=999"));
  CuptiSession &session = counted.session;
  run_for_bursts(session);
  CounterFacts facts = facts_of(session);
  CHECK_EQ(facts.lost_bursts, 1u);
  CHECK_EQ(facts.refused_devices, 0u);
}

TEST(the_first_set_that_a_gpu_can_schedule_is_taken) {
  std::vector<std::string> too_many;
  for (int i = 0; i < 17; ++i)
    too_many.push_back("sm__counter_" + std::to_string(i) + ".sum");
  CountedSession counted(counter_options({{"unknown"}, too_many, kMetrics}));
  CuptiSession &session = counted.session;
  CHECK(run_until([&] { return facts_of(session).bursts > 0; }));
  session.stop();
  CHECK(facts_of(session).metrics == kMetrics);

  CountedSession unknown(counter_options({{"sm__cycles_active.avg", "unknown"}}));
  CHECK(holds(facts_after(unknown.session).error, "no metric 'unknown'"));
  CountedSession many(counter_options({too_many}));
  CHECK(holds(facts_after(many.session).error, "2 passes"));
}

TEST(a_burst_that_is_longer_than_what_is_decoded_keeps_its_begin_and_counts_the_rest) {
  fake_cupti_pm_lag(20'000'000); // of 2 ms; the image has room for 5
  CountedSession counted;
  CuptiSession &session = counted.session;
  run_for_bursts(session);
  fake_cupti_pm_lag(0);
  CounterFacts facts = facts_of(session);
  CHECK(facts.full_images > 0);
  CHECK(facts.lost_samples > 100);
}

TEST(of_a_burst_that_is_longer_than_the_hardwares_buffer_the_newest_samples_stay) {
  fake_cupti_pm_buffer(50);
  CountedSession counted;
  CuptiSession &session = counted.session;
  CHECK(run_until([&] { return facts_of(session).bursts >= 8; }));
  session.stop();
  fake_cupti_pm_buffer(0);
  CounterFacts facts = facts_of(session);
  CHECK(facts.full_buffers > 0);
  CHECK(facts.samples <= 50 * facts.bursts);
}

TEST(samples_without_values_are_lost_and_counted) {
  CountedSession counted(counter_options(), failing("cuptiProfilerHostEvaluateToGpuValues=999"));
  CuptiSession &session = counted.session;
  CHECK(run_until([&] { return facts_of(session).lost_samples > 0; }));
  session.stop();
  CHECK_EQ(facts_of(session).samples, 0u);
  CHECK_EQ(facts_of(session).lost_bursts, 0u);
}

TEST(facts_say_where_the_cost_is) {
  CountedSession counted;
  CuptiSession &session = counted.session;
  run_for_bursts(session);
  CounterFacts facts = facts_of(session);
  CHECK(facts.open_ns > 0 && facts.decode_ns > 0 && facts.info_ns > 0 && facts.evaluate_ns > 0);
  CHECK(facts.thread_ns > 0 && facts.process_ns > facts.thread_ns);
}

TEST(without_a_process_that_samples_the_run_goes_on) {
  struct Broken {
    std::vector<std::string> command;
    const char *reason;
  };
  for (const Broken &each : {Broken{{"/bin/false"}, "counters ended"},
                             Broken{{"/bin/sh", "-c", "printf 0123 >&0"}, "counters ended"},
                             Broken{{"/bin/sh", "-c", "exec yes >&0"}, "what no burst looks like"},
                             Broken{{"/bin/sleep", "600"}, "did not answer in time"}}) {
    CuptiOptions options = counter_options();
    if (each.command[0] == "/bin/sleep")
      options.counters.answer_ms = 50;
    CountedSession counted(options, each.command);
    CounterFacts facts = facts_after(counted.session);
    CHECK(holds(facts.error, each.reason));
    CHECK_EQ(facts.lost_bursts, 0u);
    CHECK_EQ(facts.refused_devices, 1u);
    CHECK(counted.session.counts().is_complete() && counted.session.counts().records > 0);
  }
}

TEST(a_session_that_ends_does_not_wait_for_a_process_that_is_not_ready) {
  CountedSession counted(counter_options(), {"/bin/sleep", "600"});
  run_kernel("copy_kernel", 0);
  int64_t before_ns = monotonic_ns();
  counted.session.stop();
  CHECK(monotonic_ns() - before_ns < kPatienceNs);
  CHECK_EQ(facts_of(counted.session).error, "");
  CHECK_EQ(facts_of(counted.session).refused_devices, 0u);
}

TEST(a_burst_ends_with_its_session_and_keeps_its_samples) {
  CuptiOptions options = counter_options();
  options.counters.burst_ms = 100'000;
  options.counters.interval_ns = 1'000'000;
  CountedSession counted(options);
  CuptiSession &session = counted.session;
  CHECK(run_until([&] { return !facts_of(session).devices.empty(); }));
  int64_t end_ns = monotonic_ns() + 200'000'000;
  run_until([&] { return monotonic_ns() > end_ns; });
  int64_t before_ns = monotonic_ns();
  session.stop();
  CHECK(monotonic_ns() - before_ns < kPatienceNs);
  CHECK_EQ(facts_of(session).bursts, 1u);
  CHECK_EQ(facts_of(session).lost_bursts, 0u);
}

TEST(when_the_process_dies_all_devices_are_given_up) {
  CountedSession counted;
  CuptiSession &session = counted.session;
  CHECK(run_until([&] { return facts_of(session).devices.size() == 2; }, 2));
  counted.sampler.kill_it();
  CHECK(run_until([&] { return facts_of(session).refused_devices == 2; }, 2));
  session.stop();
  CHECK_EQ(facts_of(session).lost_bursts, 1u);
  CHECK(facts_of(session).devices.empty());
  CHECK(holds(facts_of(session).error, "counters ended"));
}

TEST(sessions_one_after_the_other_leave_nothing) {
  size_t files = 0, threads = 0;
  for (int i = 0; i < 4; ++i) {
    CountedSession counted;
    CuptiSession &session = counted.session;
    CHECK(run_until([&] { return facts_of(session).bursts > 0; }));
    session.stop();
    CHECK_EQ(facts_of(session).error, "");
    if (i == 0) {
      files = numbers_in("/proc/self/fd").size();
      threads = numbers_in("/proc/self/task").size();
    }
  }
  CHECK_EQ(numbers_in("/proc/self/fd").size(), files);
  CHECK_EQ(numbers_in("/proc/self/task").size(), threads);
}

TEST(bursts_go_on_while_a_graph_is_captured_and_leave_it_alone) {
  CountedSession counted;
  CuptiSession &session = counted.session;
  fake_cupti_capture_begin(8);
  CHECK(run_until([&] { return facts_of(session).bursts >= 2; }));
  CHECK(fake_cupti_capture_end(8) != 0);
  CHECK_EQ(fake_cupti_broken_captures(), 0u);
}

TEST(sessions_without_counters_sample_nothing) {
  CuptiSession session;
  run_kernel("copy_kernel", 0);
  session.stop();
  CHECK(!session.collector.facts().counters);
  CHECK_EQ(session.collector.facts().clock, "monotonic");
  CHECK(session.core->counter_metrics().empty());
}

TEST(a_forked_child_lets_go) {
  size_t sockets = descriptors_of("socket:");
  CountedSession counted;
  CuptiSession &session = counted.session;
  CHECK(run_until([&] { return facts_of(session).bursts > 0; }));
  pid_t child = fork();
  if (child == 0) {
    session.collector.stop(); // would wait for a thread that the child has not
    _exit(descriptors_of("socket:") == sockets ? 0 : 1);
  }
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
  session.stop();
}
