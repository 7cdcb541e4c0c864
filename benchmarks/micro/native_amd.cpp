// What the backends of AMD GPUs add to a launch, on the doubles of AMD's libraries: `make
// bench-native`.
//
// Every round measures, in alternating order: a double that writes a record of each kernel, which
// are only counted; and the backend with an active session. Wall time per launch until
// everything is recorded; the ratio is that of both within a round. Each measurement is a process
// of its own, because rocprofiler-sdk is configured once in a process.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "collector/rocprofiler/rocprofiler_collector.h"
#include "collector/roctracer/roctracer_collector.h"
#include "context/thread/host_range.h"
#include "driver/rocprofiler/rocprofiler_library.h"
#include "driver/roctracer/roctracer_library.h"
#include "fake_amd/control.h"
#include "session/session_registry.h"
#include "support/clock.h"

using namespace proton;

namespace {

constexpr int kRounds = 21;
constexpr uint64_t kLaunches = 200'000;
constexpr uint64_t kLaunchesPerScope = 100;
constexpr const char *kRocprofiler = "PROTON_BENCH_ROCPROFILER_LIB";
constexpr const char *kRoctracer = "PROTON_BENCH_ROCTRACER_LIB";

std::vector<LibraryCandidate> named_by(const char *variable) {
  const char *path = std::getenv(variable);
  return {{path ? path : "", "benchmark", false}};
}

HipOptions options(const char *library) {
  HipOptions chosen;
  chosen.candidates = named_by(library);
  chosen.hip_candidates = named_by("PROTON_BENCH_HIP_LIB");
  chosen.hsa_candidates = named_by("PROTON_BENCH_HSA_LIB");
  return chosen;
}

/// Of a second run: what the first one touches of the memory is not counted.
template <typename Body> double ns_per_launch(Body &&body) {
  body();
  int64_t start_ns = monotonic_ns();
  body();
  return static_cast<double>(monotonic_ns() - start_ns) / static_cast<double>(kLaunches);
}

void launch_all() { fake_amd_bench(kLaunches); }

void with_scopes() {
  for (uint64_t i = 0; i < kLaunches; i += kLaunchesPerScope) {
    open_scope(hashed("step"), FrameKind::kScope, session_state());
    fake_amd_bench(kLaunchesPerScope);
    close_top(session_state());
  }
}

/// Measures in a child, and returns what that found; 0 where it failed.
double in_child(double (*measure)()) {
  int ends[2];
  if (pipe(ends) != 0)
    return 0;
  std::fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    double ns = measure();
    ssize_t written = write(ends[1], &ns, sizeof ns);
    std::fflush(stdout);
    _exit(written == static_cast<ssize_t>(sizeof ns) ? 0 : 1);
  }
  close(ends[1]);
  double ns = 0;
  if (read(ends[0], &ns, sizeof ns) != static_cast<ssize_t>(sizeof ns))
    ns = 0;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return ns;
}

template <typename GpuCollector> double ours(const char *library, void (*launch)()) {
  SessionRegistry &sessions = SessionRegistry::instance();
  GpuCollector collector(Aggregator::instance(), options(library));
  collector.start();
  std::shared_ptr<Session> session = sessions.add(ContextSource::kShadow, false);
  session->activate();
  double ns = ns_per_launch([&] {
    launch();
    collector.flush();
  });
  RecordCounts counts = session->counts();
  if (counts.records != 2 * kLaunches)
    std::printf("LOST: %llu of %llu records\n",
                static_cast<unsigned long long>(2 * kLaunches - counts.records),
                static_cast<unsigned long long>(2 * kLaunches));
  session->deactivate();
  collector.stop();
  return ns;
}

uint64_t g_seen = 0;
RocprofilerLibrary *g_sdk = nullptr;
rocprofiler::Handle g_buffer;
rocprofiler::Handle g_context;

void count_dispatches(rocprofiler::Handle, rocprofiler::Handle, rocprofiler::RecordHeader **,
                      size_t count, void *, uint64_t) {
  g_seen += count;
}

int configure_records(rocprofiler::ClientFinalize, void *) {
  const RocprofilerFunctions &sdk = g_sdk->functions();
  const size_t kBytes = HipOptions{}.buffer_bytes;
  rocprofiler::Handle thread;
  int failed = sdk.create_context(&g_context);
  failed |= sdk.create_buffer(g_context, kBytes, kBytes - kBytes / 8, rocprofiler::kPolicyLossless,
                              count_dispatches, nullptr, &g_buffer);
  failed |= sdk.create_callback_thread(&thread);
  failed |= sdk.assign_callback_thread(g_buffer, thread);
  failed |= sdk.configure_buffer_tracing(g_context, rocprofiler::kBufferKernelDispatch, nullptr, 0,
                                         g_buffer);
  return failed;
}

rocprofiler::ConfigureResult *configure(uint32_t, const char *, uint32_t, rocprofiler::ClientId *) {
  static rocprofiler::ConfigureResult result;
  result.initialize = configure_records;
  return &result;
}

double rocprofiler_records() {
  RocprofilerLibrary sdk = RocprofilerLibrary::open(named_by(kRocprofiler));
  g_sdk = &sdk;
  sdk.check(sdk.functions().force_configure(configure), "rocprofiler_force_configure");
  sdk.check(sdk.functions().start_context(g_context), "rocprofiler_start_context");
  return ns_per_launch([&] {
    launch_all();
    sdk.functions().flush_buffer(g_buffer);
  });
}

void count_records(const char *begin, const char *end, void *) {
  g_seen += static_cast<uint64_t>(end - begin) / sizeof(roctracer::Record);
}

double roctracer_records() {
  RoctracerLibrary library = RoctracerLibrary::open(named_by(kRoctracer));
  roctracer::PoolProperties properties;
  properties.buffer_bytes = HipOptions{}.buffer_bytes;
  properties.buffer_callback = count_records;
  void *pool = nullptr;
  library.check(library.functions().open_pool(&properties, &pool), "roctracer_open_pool_expl");
  library.check(library.functions().enable_domain_activity(roctracer::kDomainHipOps, pool),
                "roctracer_enable_domain_activity_expl");
  if (library.functions().start)
    library.functions().start();
  return ns_per_launch([&] {
    launch_all();
    library.functions().flush_activity(pool);
  });
}

double rocprofiler_plain() { return ours<RocprofilerCollector>(kRocprofiler, launch_all); }
double rocprofiler_scoped() { return ours<RocprofilerCollector>(kRocprofiler, with_scopes); }
double roctracer_plain() { return ours<RoctracerCollector>(kRoctracer, launch_all); }
double roctracer_scoped() { return ours<RoctracerCollector>(kRoctracer, with_scopes); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void compare(const char *name, double (*records)(), double (*plain)(), double (*scoped)()) {
  std::vector<double> floor, with, inside, ratio, inside_ratio;
  for (int round = 0; round < kRounds; ++round) {
    bool forward = round % 2 == 0;
    double first = in_child(forward ? records : plain);
    double last = in_child(forward ? plain : records);
    floor.push_back(forward ? first : last);
    with.push_back(forward ? last : first);
    inside.push_back(in_child(scoped));
    ratio.push_back(with.back() / floor.back());
    inside_ratio.push_back(inside.back() / floor.back());
  }
  std::printf("double of %s with records %7.1f ns per launch\n", name, median(floor));
  std::printf("the backend               %7.1f   %.2f times the line above (bar 4)\n", median(with),
              median(ratio));
  std::printf("the same, a scope per 100 %7.1f   %.2f times\n", median(inside),
              median(inside_ratio));
}

} // namespace

int main() {
  compare("rocprofiler-sdk", rocprofiler_records, rocprofiler_plain, rocprofiler_scoped);
  compare("roctracer", roctracer_records, roctracer_plain, roctracer_scoped);
  return 0;
}
