// Scopes inside kernels and the kernels that another collector saw, joined.
#include "aggregate/events/session_events.h"

#include <thread>
#include <vector>

#include "aggregate/consumer/timeline_session.h"
#include "check.h"
#include "record/timeline_record.h"

using namespace proton;

namespace {

constexpr uint64_t kTimerNs = 1'790'000'000'000'000'000;
constexpr int64_t kKernelNs = 50'000'000; // when the kernel began, of our clock

RecordSink &sink() { return Aggregator::instance(); }

/// Launches on the calling thread as libcupti's collector and then that of scopes note it.
uint64_t launch(bool has_scopes = true) {
  uint64_t id = next_correlation_id();
  sink().launched(id, LaunchKind::kKernel, 0);
  sink().returned(id);
  return has_scopes ? sink().scoped() : id;
}

void run_kernel(uint64_t id, int64_t duration_ns = 10'000) {
  KernelRecord record;
  record.correlation_id = id;
  record.name = "matmul";
  record.start_ns = kKernelNs;
  record.end_ns = kKernelNs + duration_ns;
  sink().complete({&record, 1});
}

/// Scopes of a program of 4 us, which the timer puts so far behind the kernel's beginning.
void complete_scopes(uint64_t id, int64_t behind_ns, size_t count = 1) {
  std::vector<CycleScope> scopes{{"load", kNoScope}};
  std::vector<TimelineScope> instances(count);
  std::vector<TimelineProgram> programs(1);
  programs[0].init_ns = kTimerNs;
  programs[0].post_final_ns = kTimerNs + 4000;
  programs[0].count = static_cast<uint32_t>(count);
  TimelineRecord record;
  record.at = capture_current();
  record.correlation_id = id;
  record.kernel = "matmul";
  record.timer = {kKernelNs + behind_ns - static_cast<int64_t>(kTimerNs), 3000};
  record.scopes = scopes;
  record.programs = programs;
  record.instances = instances;
  sink().complete(record);
}

int64_t shown_behind_ns(const TimelineLaunch &launch) {
  return launch.timer.monotonic(launch.programs[0].init_ns) - kKernelNs;
}

} // namespace

TEST(scopes_lie_in_their_kernel_whichever_comes_first) {
  for (bool kernel_first : {false, true})
    for (int64_t behind_ns : {-7000, 3000, 9000}) {
      TimelineSession session;
      uint64_t id = launch();
      if (kernel_first)
        run_kernel(id);
      complete_scopes(id, behind_ns);
      if (!kernel_first) {
        CHECK_EQ(session.events().kernel_scopes.size(), 0);
        run_kernel(id);
      }
      const KeptEvents::Phase &phase = session.events();
      CHECK_EQ(phase.kernel_scopes.size(), 1);
      const TimelineLaunch &shown = *phase.kernel_scopes[0];
      CHECK_EQ(shown_behind_ns(shown), std::clamp<int64_t>(behind_ns, 0, 6000));
      CHECK_EQ(shown.kernel_start_ns, kKernelNs);
      CHECK_EQ(shown.kernel_end_ns, kKernelNs + 10'000);
    }
}

TEST(scopes_that_are_longer_than_their_kernel_have_its_middle) {
  TimelineSession session;
  uint64_t id = launch();
  complete_scopes(id, 200);
  run_kernel(id, 3000);
  CHECK_EQ(shown_behind_ns(*session.events().kernel_scopes.at(0)), -500);
}

TEST(scopes_that_no_error_of_clocks_explains_stay) {
  TimelineSession session;
  uint64_t id = launch();
  complete_scopes(id, 5'000'000);
  run_kernel(id);
  const TimelineLaunch &shown = *session.events().kernel_scopes.at(0);
  CHECK_EQ(shown_behind_ns(shown), 5'000'000);
  CHECK_EQ(shown.kernel_end_ns, 0);
}

TEST(scopes_without_a_kernel_of_another_collector_do_not_wait) {
  TimelineSession session;
  complete_scopes(0, 7000);
  complete_scopes(next_correlation_id(), 8000);
  const KeptEvents::Phase &phase = session.events();
  CHECK_EQ(phase.kernel_scopes.size(), 2);
  CHECK_EQ(shown_behind_ns(*phase.kernel_scopes[1]), 8000);
}

TEST(scopes_whose_kernel_is_given_up_are_shown) {
  TimelineSession session;
  uint64_t id = launch();
  complete_scopes(id, 7000);
  sink().settled({id, id, true, 0});
  CHECK_EQ(shown_behind_ns(*session.events().kernel_scopes.at(0)), 7000);
}

TEST(scopes_that_wait_are_shown_when_their_phase_ends) {
  TimelineSession session;
  uint64_t id = launch();
  complete_scopes(id, 7000);
  CHECK_EQ(session.end().kernel_scopes.size(), 1);
  run_kernel(id);
}

TEST(scopes_of_a_phase_that_was_cleared_are_forgotten) {
  TimelineSession session;
  uint64_t id = launch();
  complete_scopes(id, 7000);
  {
    Aggregator::Held held;
    session.tree.drop_phase(0);
    held.epochs().drop(session.tree);
    held.epochs().trim();
    held.events().trim();
  }
  run_kernel(id);
  session.listen();
  CHECK_EQ(session.events().kernel_scopes.size(), 0);
}

TEST(scopes_that_wait_take_a_bounded_part_of_memory) {
  TimelineSession session;
  const size_t many = ScopedLaunches::kMaxBytes / sizeof(TimelineScope) / 4;
  std::vector<uint64_t> ids;
  for (int i = 0; i < 6; ++i) {
    ids.push_back(launch());
    complete_scopes(ids.back(), 7000, many);
  }
  CHECK_EQ(session.events().kernel_scopes.size(), 3);
  for (uint64_t id : ids)
    run_kernel(id);
  const KeptEvents::Phase &phase = session.events();
  CHECK_EQ(phase.kernel_scopes.size(), 6);
  CHECK_EQ(shown_behind_ns(*phase.kernel_scopes[0]), 7000); // went before its kernel came
  CHECK_EQ(shown_behind_ns(*phase.kernel_scopes[5]), 6000);
}

TEST(a_thread_names_its_own_newest_kernel_once) {
  TimelineSession session;
  uint64_t id = launch(false);
  sink().launched_own(next_correlation_id(), LaunchKind::kKernel); // the profiler's
  uint64_t seen_elsewhere = 1;
  std::thread([&] { seen_elsewhere = sink().scoped(); }).join();
  CHECK_EQ(seen_elsewhere, 0);
  CHECK_EQ(sink().scoped(), id);
  CHECK_EQ(sink().scoped(), 0);
}
