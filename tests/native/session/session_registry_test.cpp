// Sessions, epochs and phases end to end: launches and kernels through the one sink.
#include "session/session_registry.h"

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "calltree/context_tree.h"
#include "check.h"
#include "context/thread/host_range.h"
#include "context/thread/thread_state.h"
#include "support/error.h"

using namespace proton;

namespace {

SessionRegistry &sessions() { return SessionRegistry::instance(); }
RecordSink &sink() { return Aggregator::instance(); }

// An active session that is removed at the end of the test.
struct Session {
  int id = sessions().add("test", ContextSource::kShadow, false);
  Session() { sessions().activate(id); }
  ~Session() { sessions().remove(id); }
  std::string json(uint32_t phase = 0) const {
    return sessions().encode(id, phase, FileFormat::kHatchetCompact);
  }
};

uint64_t launch() {
  uint64_t id = next_correlation_id();
  sink().launched(id);
  return id;
}

void complete(uint64_t id, const char *name = "k", int64_t duration_ns = 10) {
  KernelRecord record;
  record.correlation_id = id;
  record.name = name;
  record.end_ns = duration_ns;
  sink().complete({&record, 1});
}

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

bool has_time(const std::string &json, int64_t time_ns) {
  return contains(json, "\"time (ns)\":" + std::to_string(time_ns) + "}");
}

[[maybe_unused]] int64_t resident_memory_kb() {
  int64_t pages = 0;
  std::ifstream statm("/proc/self/statm");
  statm >> pages >> pages; // the second number
  return pages * sysconf(_SC_PAGESIZE) / 1024;
}

} // namespace

TEST(a_kernel_lands_in_the_session_that_was_active_at_its_launch) {
  Session first;
  uint64_t early = launch();
  Session second;
  uint64_t late = launch();
  complete(late, "late");
  complete(early, "early");
  CHECK(contains(first.json(), "early") && contains(first.json(), "late"));
  CHECK(!contains(second.json(), "early") && contains(second.json(), "late"));
}

TEST(launches_made_while_no_session_listens_are_nobodys) {
  Session session;
  sessions().deactivate(session.id);
  uint64_t id = launch();
  sessions().activate(session.id);
  complete(id);
  CHECK(!contains(session.json(), "\"k\""));
}

TEST(a_kernel_that_completes_after_deactivate_still_counts) {
  Session session;
  uint64_t id = launch();
  sessions().deactivate(session.id);
  complete(id, "k", 25);
  CHECK(has_time(session.json(), 25));
}

TEST(a_kernel_record_is_used_once) {
  Session session;
  uint64_t id = launch();
  complete(id, "k", 25);
  complete(id, "k", 25);
  CHECK(has_time(session.json(), 25));
  CHECK_EQ(sessions().losses(session.id)["kernel record without a launch"], 1);
}

TEST(phases_hold_what_was_launched_in_them_whenever_it_completes) {
  Session session;
  uint64_t in_first = launch();
  CHECK_EQ(sessions().advance_phase(session.id), 1);
  uint64_t in_second = launch();
  complete(in_second, "k", 7);
  complete(in_first, "k", 5);
  CHECK(has_time(session.json(0), 5));
  CHECK(has_time(session.json(1), 7));
}

TEST(a_phase_is_complete_when_every_launch_is_accounted_for) {
  Session session;
  uint64_t done = launch(), broken = launch();
  CHECK(!sessions().is_phase_complete(session.id, 0));
  sessions().advance_phase(session.id);
  CHECK(!sessions().is_phase_complete(session.id, 0));
  complete(done);
  CHECK(!sessions().is_phase_complete(session.id, 0));
  sink().failed(broken);
  CHECK(sessions().is_phase_complete(session.id, 0));
}

TEST(a_cleared_phase_is_gone_and_its_late_kernels_too) {
  Session session;
  uint64_t late = launch();
  sessions().advance_phase(session.id);
  sessions().clear_phase(session.id, 0, false);
  complete(late, "late");
  CHECK_THROWS(session.json(0), Error);
  CHECK(!contains(session.json(1), "late"));
}

TEST(the_current_phase_goes_on_empty_after_a_clear) {
  Session session;
  complete(launch(), "old");
  sessions().clear_phase(session.id, 0, false);
  complete(launch(), "new");
  CHECK(!contains(session.json(), "old") && contains(session.json(), "new"));
}

TEST(lost_records_are_counted_by_reason) {
  Session session;
  sink().dropped({"buffer full", 3});
  sink().dropped({"buffer full", 2});
  CHECK_EQ(sessions().losses(session.id)["buffer full"], 5);
}

TEST(a_kernel_that_ends_before_it_starts_is_dropped_and_counted) {
  Session session;
  complete(launch(), "k", -1);
  CHECK(!contains(session.json(), "\"k\""));
  CHECK_EQ(sessions().counts(session.id).dropped, 1);
  CHECK(sessions().counts(session.id).is_complete());
}

TEST(an_unknown_session_is_named_with_the_live_ones) {
  std::string message;
  try {
    sessions().activate(12345);
  } catch (const Error &error) {
    CHECK(error.code() == ErrorCode::kSession);
    message = error.what();
  }
  CHECK(contains(message, "Session has not been initialized: 12345"));
}

TEST(memory_is_flat_over_many_scopes_and_phases) {
  constexpr int kPhases = 60, kWarm = 20, kNames = 1000;
  Session session;
  ShadowStack &stack = this_thread().stack;
  size_t names = 0, contexts = 0;
  int64_t resident_kb = 0;
  for (int phase = 0; phase < kPhases; ++phase) {
    for (int i = 0; i < kNames; ++i) {
      std::string name = "scope " + std::to_string(phase * kNames + i);
      open_scope(hashed(name), FrameKind::kScope, situation());
      complete(launch());
      close_top(situation());
    }
    sessions().clear_phase(session.id, 0, false);
    names = phase == kWarm ? live_name_count() : names;
    contexts = phase == kWarm ? ContextTree::instance().live_count() : contexts;
    resident_kb = phase == kWarm ? resident_memory_kb() : resident_kb;
  }
  CHECK_EQ(live_name_count(), names);
  CHECK_EQ(ContextTree::instance().live_count(), contexts);
  CHECK_EQ(stack.depth(), 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // they keep what was freed
  CHECK(resident_memory_kb() - resident_kb < 1024);                 // 40 000 names take more
#endif
}

TEST(contexts_of_cleared_phases_are_freed_while_an_older_phase_is_kept) {
  Session session; // phase 0 is never cleared
  ShadowStack &stack = this_thread().stack;
  open_scope(hashed("of phase 0"), FrameKind::kScope, situation());
  uint64_t early = launch();
  close_top(situation());
  uint32_t phase = sessions().advance_phase(session.id);
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 100; ++i) {
      std::string name = "scope " + std::to_string(round * 100 + i);
      open_scope(hashed(name), FrameKind::kScope, situation());
      complete(launch());
      close_top(situation());
    }
    uint32_t ended = phase;
    phase = sessions().advance_phase(session.id);
    sessions().clear_phase(session.id, ended, false);
  }
  CHECK_EQ(ContextTree::instance().live_count(), 1);
  CHECK_EQ(Aggregator::instance().epochs.size(), 2);
  CHECK_EQ(stack.depth(), 0);
  complete(early, "late", 7);
  CHECK(has_time(session.json(0), 7));
  CHECK(contains(session.json(0), "of phase 0"));
}

TEST(sessions_beside_a_paused_one_leave_nothing) {
  Session paused;
  sessions().deactivate(paused.id);
  std::vector<uint64_t> late;
  for (int i = 0; i < 20; ++i) {
    Session session;
    open_scope(hashed("scope " + std::to_string(i)), FrameKind::kScope, situation());
    late.push_back(launch());
    close_top(situation());
  }
  CHECK_EQ(ContextTree::instance().live_count(), 0);
  CHECK(Aggregator::instance().epochs.size() <= 1);
  CHECK_EQ(Aggregator::instance().launches.size(), 0);
  for (uint64_t id : late)
    complete(id);
  CHECK_EQ(sessions().losses(paused.id).size(), 0);
}

TEST(a_session_that_pauses_often_needs_no_memory_for_it) {
  Session session;
  for (int i = 0; i < 100; ++i) {
    sessions().deactivate(session.id);
    sink().dropped({"while nobody listens", 1});
    sessions().drain();
    sessions().activate(session.id);
    complete(launch(), "k", 10);
  }
  CHECK_EQ(Aggregator::instance().epochs.size(), 1);
  CHECK_EQ(sessions().counts(session.id).launches, 100);
  CHECK_EQ(sessions().losses(session.id).size(), 0);
  CHECK(has_time(session.json(), 1000));
}

TEST(threads_that_launch_while_phases_advance_lose_nothing) {
  constexpr int kThreads = 4, kLaunches = 2000;
  Session session;
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&] {
      ShadowStack &stack = this_thread().stack;
      for (int i = 0; i < kLaunches; ++i) {
        stack.push(hashed("scope"), FrameKind::kScope, situation());
        complete(launch(), "k", 1);
        stack.pop(situation());
      }
      --running;
    });
  uint32_t last = 0;
  while (running > 0 && last < 500)
    last = sessions().advance_phase(session.id);
  for (std::thread &thread : threads)
    thread.join();
  RecordCounts counts = sessions().counts(session.id);
  CHECK_EQ(counts.records, uint64_t{kThreads} * kLaunches);
  CHECK(counts.is_complete());
}

TEST(clearing_accounts_for_launches_whose_record_will_never_count) {
  Session session;
  complete(launch());
  uint64_t late = launch();
  sessions().clear_phase(session.id, 0, false);
  RecordCounts counts = sessions().counts(session.id);
  CHECK_EQ(counts.launches, 2);
  CHECK_EQ(counts.cleared, 1);
  CHECK(counts.is_complete());
  complete(late);
  CHECK(sessions().losses(session.id).empty());
}

TEST(a_failed_launch_of_a_cleared_phase_excuses_no_unknown_record) {
  Session session;
  uint64_t late = launch();
  sessions().clear_phase(session.id, 0, false);
  sink().failed(late);
  complete(next_correlation_id());
  CHECK_EQ(sessions().losses(session.id)["kernel record without a launch"], 1);
}

TEST(a_correlation_id_used_twice_leaves_no_phase_incomplete) {
  Session session;
  uint64_t id = launch();
  sink().launched(id);
  complete(id);
  sessions().advance_phase(session.id);
  CHECK(sessions().is_phase_complete(session.id, 0));
  CHECK_EQ(sessions().losses(session.id)["correlation id used again before its record came"], 1);
}

TEST(a_duration_that_no_integer_holds_is_dropped_and_counted) {
  Session session;
  KernelRecord record;
  record.correlation_id = launch();
  record.name = "k";
  record.start_ns = INT64_MIN;
  record.end_ns = INT64_MAX;
  sink().complete({&record, 1});
  CHECK_EQ(sessions().counts(session.id).dropped, 1);
  CHECK(!contains(session.json(), "\"k\""));
}

TEST(records_of_a_thread_that_ended_inside_a_scope_stay_on_its_path) {
  Session session;
  std::thread([&] {
    this_thread().stack.push(hashed("left open"), FrameKind::kScope, situation());
    sessions().advance_phase(session.id);
    complete(launch(), "early", 3);
  }).join();
  sessions().clear_phase(session.id, 0, false);
  // Frees what nobody needs; a node freed too early would be this scope's now.
  ShadowStack &stack = this_thread().stack;
  stack.push(hashed("another"), FrameKind::kScope, situation());
  complete(launch(), "late", 4);
  stack.pop(situation());
  std::string json = session.json(1);
  CHECK(contains(json, "left open") && contains(json, "another"));
}

TEST(a_thread_that_reuses_the_stack_of_the_starting_one_leads_nobody) {
  int id = -1;
  std::thread([&] {
    id = sessions().add("started elsewhere", ContextSource::kShadow, false);
    sessions().activate(id);
  }).join();
  std::thread([&] {
    this_thread().stack.push(hashed("not the leader's"), FrameKind::kScope, situation());
    sessions().advance_phase(id);
    std::thread([] { complete(launch()); }).join();
    this_thread().stack.pop(situation());
  }).join();
  sessions().clear_phase(id, 0, false);
  std::string json = sessions().encode(id, 1, FileFormat::kHatchetCompact);
  size_t scope = json.find("not the leader's"), kernel = json.find("\"k\"");
  CHECK(kernel != std::string::npos);
  CHECK(scope == std::string::npos || json.find("\"children\":[]") < scope);
  sessions().remove(id);
}

TEST(a_forked_childs_sessions_do_not_go_on) {
  Session session;
  sessions().reset_after_fork();
  CHECK(!situation().active);
  CHECK_EQ(sessions().active_count(), 0);
}
