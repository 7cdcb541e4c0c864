// Eight threads launch kernels and graphs without a pause while sessions and the collector start
// and stop. Every launch that a session saw has its record. PROTON_BENCH_STRESS multiplies the
// launches.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "check.h"
#include "collector/cupti/control/cupti_session.h"

using namespace proton;

namespace {

constexpr int kThreads = 8;
constexpr uint64_t kLaunchesPerScope = 16;
constexpr uint64_t kReplays = 3; // of each graph
constexpr uint32_t kFirstStream = 100;
constexpr uint64_t kMostBuffers = 8;

uint64_t wanted_launches() {
  const char *factor = std::getenv("PROTON_BENCH_STRESS");
  return 20'000 * static_cast<uint64_t>(factor ? std::max(1, std::atoi(factor)) : 1);
}

/// Threads that launch until they are stopped.
class Crew {
public:
  Crew() {
    for (int number = 0; number < kThreads; ++number)
      threads_.emplace_back([this, number] {
        work("thread " + std::to_string(number), kFirstStream + static_cast<uint32_t>(number));
      });
  }
  ~Crew() { join(); }
  uint64_t launches() const { return launches_.load(); }
  uint64_t join() {
    is_over_ = true;
    for (std::thread &thread : threads_)
      thread.join();
    threads_.clear();
    return launches();
  }

private:
  void work(const std::string &name, uint32_t stream) {
    for (uint64_t serial = 0; !is_over_; ++serial) {
      // A GPU does not outrun the reader of its records either, and the double's flush waits
      // until there is nothing left to deliver.
      if (fake_cupti_buffers_outstanding() > kMostBuffers)
        while (fake_cupti_buffers_outstanding() > 1 && !is_over_)
          std::this_thread::yield();
      ScopeGuard scope(name.c_str());
      fake_cupti_bench(kLaunchesPerScope);
      launches_ += kLaunchesPerScope;
      if (serial % 32 == 0)
        fake_cupti_failing_launch("broken", 700);
      if (serial % 16 == 0)
        replay_graph(stream);
    }
  }
  /// Captures, launches and destroys a graph; the collector may start or stop at any point.
  void replay_graph(uint32_t stream) {
    fake_cupti_capture_begin(stream);
    fake_cupti_launch("captured", stream);
    fake_cupti_launch("captured", stream);
    uint32_t graph = fake_cupti_capture_end(stream);
    uint32_t executable = fake_cupti_graph_instantiate(graph);
    fake_cupti_graph_destroy(graph);
    for (uint64_t i = 0; i < kReplays; ++i)
      fake_cupti_graph_launch(executable, stream);
    launches_ += kReplays;
    fake_cupti_graph_exec_destroy(executable);
  }
  std::atomic<bool> is_over_{false};
  std::atomic<uint64_t> launches_{0};
  std::vector<std::thread> threads_;
};

void check_whole(const CuptiSession &session) {
  RecordCounts counts = session.counts();
  CHECK_EQ(counts.launches, counts.records + counts.failed);
  CHECK_EQ(session.losses(), "");
}

} // namespace

TEST(no_record_is_lost_while_collector_and_sessions_start_and_stop) {
  Crew crew;
  uint64_t records = 0;
  for (int round = 0; records < wanted_launches(); ++round) {
    CuptiOptions options = double_options();
    options.buffer_bytes = 64 << 10;
    options.flush_period_ms = round % 2 == 0 ? 1 : 0;
    CuptiSession session(options);
    for (int i = 0; i < 4; ++i) {
      session.core->deactivate();
      session.core->activate();
      session.collector.flush();
      session.core->advance_phase();
    }
    session.stop();
    check_whole(session);
    records += session.counts().records;
  }
  CHECK(records <= crew.launches());
}

TEST(a_long_session_has_every_launch) {
  CuptiSession session;
  Crew crew;
  while (crew.launches() < wanted_launches())
    std::this_thread::yield();
  uint64_t launches = crew.join();
  session.stop();
  check_whole(session);
  CHECK_EQ(session.counts().records, launches);
}
