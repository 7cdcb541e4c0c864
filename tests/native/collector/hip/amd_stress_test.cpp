// Threads launch kernels and graphs without a pause while sessions of both backends of AMD GPUs
// start and stop. Every launch that a session saw has its record.
#include <atomic>
#include <thread>
#include <vector>

#include "check.h"
#include "collector/hip/amd_options.h"
#include "collector/recorded_session.h"
#include "collector/rocprofiler/rocprofiler_collector.h"
#include "collector/roctracer/roctracer_collector.h"
#include "fake_amd/control.h"

using namespace proton;

namespace {

constexpr int kThreads = 6;
constexpr int kSessions = 6; // of each backend; a flush beside open captures may take a second
constexpr uint64_t kMostWaiting = 20'000; // a GPU is not faster than its records are read either

/// Launches until it is asked to stop.
void work(uint32_t stream, const std::atomic<bool> &is_over) {
  const std::string name = "stream " + std::to_string(stream);
  for (uint64_t serial = 0; !is_over; ++serial) {
    while (fake_amd_records_waiting() > kMostWaiting && !is_over)
      std::this_thread::yield();
    ScopeGuard scope(name.c_str());
    fake_amd_bench(16);
    fake_amd_range_push("range");
    fake_amd_launch("in a range", stream);
    fake_amd_range_pop();
    if (serial % 8 != 0)
      continue;
    fake_amd_capture_begin(stream);
    fake_amd_launch("captured", stream);
    fake_amd_launch("captured", stream);
    uint32_t graph = fake_amd_capture_end(stream);
    uint32_t exec = fake_amd_graph_instantiate(graph);
    fake_amd_graph_destroy(graph);
    fake_amd_graph_launch(exec, stream);
    fake_amd_graph_exec_destroy(exec);
  }
}

template <typename GpuCollector> void start_and_stop(const char *library) {
  HipOptions options = amd_options(library);
  options.flush_period_ms = 1;
  options.roctx = true;
  for (int i = 0; i < kSessions; ++i) {
    RecordedSession<GpuCollector> session(options);
    const uint64_t wanted = 500 * static_cast<uint64_t>(i % 4);
    while (session.counts().records < wanted)
      session.collector.flush();
    session.stop();
    CHECK_EQ(session.losses(), "");
    CHECK(session.counts().is_complete());
  }
}

} // namespace

TEST(sessions_start_and_stop_while_threads_launch) {
  std::atomic<bool> is_over{false};
  { // registers before anything is launched
    RecordedSession<RocprofilerCollector> first(amd_options("PROTON_BENCH_ROCPROFILER_LIB"));
  }
  std::vector<std::thread> threads;
  for (uint32_t number = 0; number < kThreads; ++number)
    threads.emplace_back([number, &is_over] { work(100 + number, is_over); });
  start_and_stop<RocprofilerCollector>("PROTON_BENCH_ROCPROFILER_LIB");
  start_and_stop<RoctracerCollector>("PROTON_BENCH_ROCTRACER_LIB");
  is_over = true;
  for (std::thread &thread : threads)
    thread.join();
  CHECK_EQ(Aggregator::Held().launches().size(), 0);
}
