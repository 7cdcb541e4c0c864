// What the cupti backend adds to a launch, on the double of libcupti: `make bench-native`.
//
// Every round measures, in alternating order: the double alone; the double that also writes a
// record of each kernel, which is looked at; and the backend with an active session. Wall time
// per launch until everything is recorded; the ratio is that of the last two within a round.
//
// Then bursts of launches, as a GPU's program makes them, each in a session of its own: with a tree
// and with a timeline too. On the clock and of the launching thread's processor time, without what
// the flush behind the burst takes.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "collector/cupti/control/cupti_collector.h"
#include "context/thread/host_range.h"
#include "control.h"
#include "driver/cupti/cupti_library.h"
#include "driver/cupti/cupti_records.h"
#include "session/session_registry.h"
#include "support/clock.h"
#include "writer/timeline/trace_encoder.h"

#include <unistd.h>

using namespace proton;

namespace {

constexpr int kRounds = 31;
constexpr uint64_t kLaunches = 200'000;
constexpr uint64_t kLaunchesPerScope = 100;
constexpr uint64_t kBurst = 4000;
constexpr int kBursts = 25; // of a round
const size_t kBufferBytes = CuptiOptions{}.buffer_bytes;

CuptiOptions options() {
  CuptiOptions chosen;
  chosen.candidates = {{std::getenv("PROTON_BENCH_CUPTI_LIB"), "benchmark", false}};
  chosen.buffer_bytes = kBufferBytes;
  return chosen;
}

const CuptiFunctions &cupti_functions() {
  static const CuptiLibrary library = CuptiLibrary::open(options().candidates);
  return library.functions();
}

void launch_all() { fake_cupti_bench(kLaunches); }

void with_scopes() {
  for (uint64_t i = 0; i < kLaunches; i += kLaunchesPerScope) {
    open_scope(hashed("step"), FrameKind::kScope, session_state());
    fake_cupti_bench(kLaunchesPerScope);
    close_top(session_state());
  }
}

template <typename Body> double ns_per_launch(Body &&body) {
  int64_t start_ns = monotonic_ns();
  body();
  return static_cast<double>(monotonic_ns() - start_ns) / static_cast<double>(kLaunches);
}

std::vector<uint8_t *> g_free;
std::mutex g_free_mutex;
uint64_t g_seen = 0;

void requested(uint8_t **buffer, size_t *bytes, size_t *max_records) {
  std::lock_guard lock(g_free_mutex);
  *max_records = 0;
  *bytes = kBufferBytes;
  *buffer = g_free.empty() ? static_cast<uint8_t *>(std::malloc(kBufferBytes)) : g_free.back();
  if (!g_free.empty())
    g_free.pop_back();
}

void completed(void *, uint32_t, uint8_t *buffer, size_t, size_t valid_bytes) {
  void *record = nullptr;
  while (cupti_functions().activity_get_next_record(buffer, valid_bytes, &record) == 0)
    ++g_seen;
  std::lock_guard lock(g_free_mutex);
  g_free.push_back(buffer);
}

double alone() { return ns_per_launch(launch_all); }

double with_records() {
  const CuptiFunctions &cupti = cupti_functions();
  cupti.activity_register_callbacks(requested, completed);
  cupti.activity_enable(cupti::kKindConcurrentKernel);
  double ns = ns_per_launch([&] {
    launch_all();
    cupti.activity_flush_all(0);
  });
  cupti.activity_disable(cupti::kKindConcurrentKernel);
  return ns;
}

int64_t thread_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

/// What a launch took of a burst.
struct BurstCost {
  double wall_ns = 0;
  double thread_ns = 0;
};

std::string trace_path() {
  return std::filesystem::temp_directory_path() / ("native_cupti_" + std::to_string(getpid()));
}

/// A burst's costs with an active session: one with a tree, or with a timeline beside it.
BurstCost burst(bool has_timeline) {
  SessionRegistry &sessions = SessionRegistry::instance();
  CuptiCollector collector(Aggregator::instance(), options());
  collector.start();
  std::shared_ptr<Session> session = sessions.add(ContextSource::kShadow, false, false);
  if (has_timeline) {
    StreamPlan plan;
    plan.path = trace_path();
    plan.formats = {TraceFormat::kChrome};
    plan.make_encoder = make_trace_encoder;
    session->stream_timeline(std::move(plan));
  }
  session->activate();
  int64_t start_ns = monotonic_ns(), start_thread_ns = thread_ns();
  fake_cupti_bench(kBurst);
  BurstCost cost{static_cast<double>(monotonic_ns() - start_ns) / kBurst,
                 static_cast<double>(thread_ns() - start_thread_ns) / kBurst};
  collector.flush();
  session->deactivate();
  if (has_timeline)
    session->end_timeline({TraceFormat::kChrome}, 0, monotonic_ns() + 10'000'000'000);
  collector.stop();
  session->remove();
  return cost;
}

double ours(void (*launch)()) {
  SessionRegistry &sessions = SessionRegistry::instance();
  CuptiCollector collector(Aggregator::instance(), options());
  collector.start();
  std::shared_ptr<Session> session = sessions.add(ContextSource::kShadow, false);
  session->activate();
  double ns = ns_per_launch([&] {
    launch();
    collector.flush();
  });
  RecordCounts counts = session->counts();
  if (counts.records != kLaunches)
    std::printf("LOST: %llu of %llu records\n",
                static_cast<unsigned long long>(kLaunches - counts.records),
                static_cast<unsigned long long>(kLaunches));
  session->deactivate();
  collector.stop();
  session->remove();
  return ns;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Pairs of bursts, the one with a timeline first in every second pair.
void compare_bursts() {
  burst(false), burst(true); // their memory is there afterwards
  std::vector<double> tree_wall, tree_thread, more_wall, more_thread, ratio;
  for (int i = 0; i < kRounds * kBursts; ++i) {
    BurstCost first = burst(i % 2 != 0), second = burst(i % 2 == 0);
    const BurstCost &tree = i % 2 == 0 ? first : second, &trace = i % 2 == 0 ? second : first;
    tree_wall.push_back(tree.wall_ns);
    tree_thread.push_back(tree.thread_ns);
    more_wall.push_back(trace.wall_ns - tree.wall_ns);
    more_thread.push_back(trace.thread_ns - tree.thread_ns);
    ratio.push_back(trace.thread_ns / tree.thread_ns);
  }
  std::printf("bursts, tree                 %7.1f ns per launch on the clock, %.1f of its thread\n",
              median(tree_wall), median(tree_thread));
  std::printf("a timeline adds              %7.1f ns per launch on the clock, %.1f of its thread "
              "(%.2f times)\n",
              median(more_wall), median(more_thread), median(ratio));
  std::filesystem::remove(trace_path() + ".chrome_trace");
}

} // namespace

int main() {
  std::vector<double> bare, floor, plain, scoped, ratio, scoped_ratio;
  for (int round = 0; round < kRounds; ++round) {
    bool forward = round % 2 == 0;
    double first = forward ? alone() : ours(launch_all);
    floor.push_back(with_records());
    double last = forward ? ours(launch_all) : alone();
    bare.push_back(forward ? first : last);
    plain.push_back(forward ? last : first);
    scoped.push_back(ours(with_scopes));
    ratio.push_back(plain.back() / floor.back());
    scoped_ratio.push_back(scoped.back() / floor.back());
  }
  std::printf("double alone                 %7.1f ns per launch\n", median(bare));
  std::printf("double with kernel records   %7.1f\n", median(floor));
  std::printf("cupti backend                %7.1f   %.2f times the line above (bar 4)\n",
              median(plain), median(ratio));
  std::printf("the same, a scope per 100     %7.1f   %.2f times\n", median(scoped),
              median(scoped_ratio));
  compare_bursts();
  return 0;
}
