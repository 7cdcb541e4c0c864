// Sessions, epochs and phases end to end: launches and kernels through the one sink.
#include "session/session_registry.h"

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <numeric>
#include <thread>

#include "calltree/context_tree.h"
#include "check.h"
#include "context/thread/host_range.h"
#include "context/thread/steps.h"
#include "context/thread/thread_state.h"
#include "support/error.h"
#include "tree_value.h"

using namespace proton;

namespace {

SessionRegistry &sessions() { return SessionRegistry::instance(); }
RecordSink &sink() { return Aggregator::instance(); }

// An active session that is removed at the end of the test.
struct ActiveSession {
  std::shared_ptr<Session> core = sessions().add(ContextSource::kShadow, false);
  ActiveSession() { core->activate(); }
  ~ActiveSession() { core->remove(); }
  std::string json(uint32_t phase = 0) const { return tree_text(*core, phase); }
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

/// The sum of a metric over the rows of an encoded file.
int64_t sum_of(const msgpack::Value &file, const std::string &name) {
  int64_t sum = 0;
  for (const msgpack::Value &metric : file["metrics"].items) {
    const std::string &bytes = metric["values"]["bytes"].text;
    std::vector<int64_t> values(bytes.size() / sizeof(int64_t));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    if (metric["name"].text == name)
      sum = std::accumulate(values.begin(), values.end(), sum);
  }
  return sum;
}

[[maybe_unused]] int64_t resident_memory_kb() {
  int64_t pages = 0;
  std::ifstream statm("/proc/self/statm");
  statm >> pages >> pages; // the second number
  return pages * sysconf(_SC_PAGESIZE) / 1024;
}

} // namespace

TEST(a_kernel_lands_in_the_session_that_was_active_at_its_launch) {
  ActiveSession first;
  uint64_t early = launch();
  ActiveSession second;
  uint64_t late = launch();
  complete(late, "late");
  complete(early, "early");
  CHECK(contains(first.json(), "early") && contains(first.json(), "late"));
  CHECK(!contains(second.json(), "early") && contains(second.json(), "late"));
}

TEST(launches_made_while_no_session_listens_are_dropped) {
  ActiveSession session;
  session.core->deactivate();
  uint64_t id = launch();
  session.core->activate();
  complete(id);
  CHECK(!contains(session.json(), "\"k\""));
}

TEST(a_kernel_that_completes_after_deactivate_still_counts) {
  ActiveSession session;
  uint64_t id = launch();
  session.core->deactivate();
  complete(id, "k", 25);
  CHECK(has_time(session.json(), 25));
}

TEST(a_kernel_record_is_used_once) {
  ActiveSession session;
  uint64_t id = launch();
  complete(id, "k", 25);
  complete(id, "k", 25);
  CHECK(has_time(session.json(), 25));
  CHECK_EQ(session.core->losses()["kernel record without a launch"], 1);
}

TEST(phases_hold_what_was_launched_in_them_whenever_it_completes) {
  ActiveSession session;
  uint64_t in_first = launch();
  CHECK_EQ(session.core->advance_phase(), 1);
  uint64_t in_second = launch();
  complete(in_second, "k", 7);
  complete(in_first, "k", 5);
  CHECK(has_time(session.json(0), 5));
  CHECK(has_time(session.json(1), 7));
}

TEST(a_phase_is_complete_when_every_launch_is_accounted_for) {
  ActiveSession session;
  uint64_t done = launch(), broken = launch();
  CHECK(!session.core->is_phase_complete(0));
  session.core->advance_phase();
  CHECK(!session.core->is_phase_complete(0));
  complete(done);
  CHECK(!session.core->is_phase_complete(0));
  sink().failed(broken);
  CHECK(session.core->is_phase_complete(0));
}

TEST(a_cleared_phase_is_gone_and_its_late_kernels_too) {
  ActiveSession session;
  uint64_t late = launch();
  session.core->advance_phase();
  session.core->clear_phase(0, false);
  complete(late, "late");
  CHECK_THROWS(session.json(0), Error);
  CHECK(!contains(session.json(1), "late"));
}

TEST(the_current_phase_goes_on_empty_after_a_clear) {
  ActiveSession session;
  complete(launch(), "old");
  session.core->clear_phase(0, false);
  complete(launch(), "new");
  CHECK(!contains(session.json(), "old") && contains(session.json(), "new"));
}

TEST(lost_records_are_counted_by_reason) {
  ActiveSession session;
  sink().dropped({"buffer full", 3});
  sink().dropped({"buffer full", 2});
  CHECK_EQ(session.core->losses()["buffer full"], 5);
}

TEST(a_kernel_that_ends_before_it_starts_is_dropped_and_counted) {
  ActiveSession session;
  complete(launch(), "k", -1);
  CHECK(!contains(session.json(), "\"k\""));
  CHECK_EQ(session.core->counts().dropped, 1);
  CHECK(session.core->counts().is_complete());
}

TEST(a_session_that_was_removed_is_named_with_the_live_ones) {
  ActiveSession live;
  std::shared_ptr<Session> removed = sessions().add(ContextSource::kShadow, false);
  removed->remove();
  std::string message;
  try {
    removed->activate();
  } catch (const Error &error) {
    CHECK(error.code() == ErrorCode::kSession);
    message = error.what();
  }
  CHECK(!removed->is_live());
  CHECK(contains(message, "Session has not been initialized: " + std::to_string(removed->id())));
  CHECK(contains(message, "live sessions: " + std::to_string(live.core->id())));
  CHECK_EQ(sessions().list().size(), 1);
}

TEST(memory_is_flat_over_many_scopes_and_phases) {
  constexpr int kPhases = 60, kWarm = 20, kNames = 1000;
  ActiveSession session;
  ShadowStack &stack = this_thread().stack;
  size_t names = 0, contexts = 0;
  int64_t resident_kb = 0;
  for (int phase = 0; phase < kPhases; ++phase) {
    for (int i = 0; i < kNames; ++i) {
      std::string name = "scope " + std::to_string(phase * kNames + i);
      open_scope(hashed(name), FrameKind::kScope, session_state());
      complete(launch());
      close_top(session_state());
    }
    session.core->clear_phase(0, false);
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
  ActiveSession session; // phase 0 is never cleared
  ShadowStack &stack = this_thread().stack;
  open_scope(hashed("of phase 0"), FrameKind::kScope, session_state());
  uint64_t early = launch();
  close_top(session_state());
  uint32_t phase = session.core->advance_phase();
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 100; ++i) {
      std::string name = "scope " + std::to_string(round * 100 + i);
      open_scope(hashed(name), FrameKind::kScope, session_state());
      complete(launch());
      close_top(session_state());
    }
    uint32_t ended = phase;
    phase = session.core->advance_phase();
    session.core->clear_phase(ended, false);
  }
  CHECK_EQ(ContextTree::instance().live_count(), 1);
  CHECK_EQ(Aggregator::Held().epochs().trim().size(), 2);
  CHECK_EQ(stack.depth(), 0);
  complete(early, "late", 7);
  CHECK(has_time(session.json(0), 7));
  CHECK(contains(session.json(0), "of phase 0"));
}

TEST(sessions_beside_a_paused_one_leave_nothing) {
  ActiveSession paused;
  paused.core->deactivate();
  std::vector<uint64_t> late;
  for (int i = 0; i < 20; ++i) {
    ActiveSession session;
    open_scope(hashed("scope " + std::to_string(i)), FrameKind::kScope, session_state());
    late.push_back(launch());
    close_top(session_state());
  }
  CHECK_EQ(ContextTree::instance().live_count(), 0);
  CHECK(Aggregator::Held().epochs().trim().size() <= 1);
  CHECK_EQ(Aggregator::Held().launches().size(), 0);
  for (uint64_t id : late)
    complete(id);
  CHECK_EQ(paused.core->losses().size(), 0);
}

TEST(a_session_that_pauses_often_needs_no_memory_for_it) {
  ActiveSession session;
  for (int i = 0; i < 100; ++i) {
    session.core->deactivate();
    sink().dropped({"while no session listens", 1});
    Aggregator::Held().drain();
    session.core->activate();
    complete(launch(), "k", 10);
  }
  CHECK_EQ(Aggregator::Held().epochs().trim().size(), 1);
  CHECK_EQ(session.core->counts().launches, 100);
  CHECK_EQ(session.core->losses().size(), 0);
  CHECK(has_time(session.json(), 1000));
}

TEST(threads_that_launch_while_phases_advance_lose_nothing) {
  constexpr int kThreads = 4, kLaunches = 2000;
  ActiveSession session;
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&] {
      ShadowStack &stack = this_thread().stack;
      for (int i = 0; i < kLaunches; ++i) {
        stack.push(hashed("scope"), FrameKind::kScope, session_state());
        complete(launch(), "k", 1);
        stack.pop(session_state());
      }
      --running;
    });
  uint32_t last = 0;
  while (running > 0 && last < 500)
    last = session.core->advance_phase();
  for (std::thread &thread : threads)
    thread.join();
  RecordCounts counts = session.core->counts();
  CHECK_EQ(counts.records, uint64_t{kThreads} * kLaunches);
  CHECK(counts.is_complete());
}

TEST(clearing_accounts_for_launches_whose_record_will_never_count) {
  ActiveSession session;
  complete(launch());
  uint64_t late = launch();
  session.core->clear_phase(0, false);
  RecordCounts counts = session.core->counts();
  CHECK_EQ(counts.launches, 2);
  CHECK_EQ(counts.cleared, 1);
  CHECK(counts.is_complete());
  complete(late);
  CHECK(session.core->losses().empty());
}

TEST(a_failed_launch_of_a_cleared_phase_excuses_no_unknown_record) {
  ActiveSession session;
  uint64_t late = launch();
  session.core->clear_phase(0, false);
  sink().failed(late);
  complete(next_correlation_id());
  CHECK_EQ(session.core->losses()["kernel record without a launch"], 1);
}

TEST(a_correlation_id_used_twice_leaves_no_phase_incomplete) {
  ActiveSession session;
  uint64_t id = launch();
  sink().launched(id);
  complete(id);
  session.core->advance_phase();
  CHECK(session.core->is_phase_complete(0));
  CHECK_EQ(session.core->losses()["correlation id used again before its record came"], 1);
}

TEST(a_duration_that_no_integer_holds_is_dropped_and_counted) {
  ActiveSession session;
  KernelRecord record;
  record.correlation_id = launch();
  record.name = "k";
  record.start_ns = INT64_MIN;
  record.end_ns = INT64_MAX;
  sink().complete({&record, 1});
  CHECK_EQ(session.core->counts().dropped, 1);
  CHECK(!contains(session.json(), "\"k\""));
}

TEST(records_of_a_thread_that_ended_inside_a_scope_stay_on_its_path) {
  ActiveSession session;
  std::thread([&] {
    this_thread().stack.push(hashed("left open"), FrameKind::kScope, session_state());
    session.core->advance_phase();
    complete(launch(), "early", 3);
  }).join();
  session.core->clear_phase(0, false);
  // Frees what is not needed; a node freed too early would be this scope's now.
  ShadowStack &stack = this_thread().stack;
  stack.push(hashed("another"), FrameKind::kScope, session_state());
  complete(launch(), "late", 4);
  stack.pop(session_state());
  std::string json = session.json(1);
  CHECK(contains(json, "left open") && contains(json, "another"));
}

TEST(a_thread_that_reuses_the_stack_of_the_starting_one_leads_no_other) {
  std::shared_ptr<Session> session;
  std::thread([&] {
    session = sessions().add(ContextSource::kShadow, false);
    session->activate();
  }).join();
  std::thread([&] {
    this_thread().stack.push(hashed("not the leader's"), FrameKind::kScope, session_state());
    session->advance_phase();
    std::thread([] { complete(launch()); }).join();
    this_thread().stack.pop(session_state());
  }).join();
  session->clear_phase(0, false);
  bool has_kernel = false;
  msgpack::Value root = tree_value(*session, 1);
  for (const msgpack::Value &child : root["children"].items)
    has_kernel |= child["frame"]["name"].text == "k";
  CHECK(has_kernel);
  session->remove();
}

TEST(a_forked_childs_sessions_do_not_go_on) {
  ActiveSession session;
  sessions().reset_after_fork();
  CHECK(!session_state().active);
  CHECK_EQ(sessions().active_count(), 0);
}

TEST(the_newest_whole_window_of_steps_is_part_of_the_encoded_session) {
  ActiveSession session;
  session.core->deactivate();
  session.core->follow_steps();
  session.core->activate();
  CHECK(!session.core->add_steady(""));
  std::vector<uint64_t> late;
  for (int step = 1; step <= 9; ++step) { // 4 to 7 are the last window that is over
    mark_step(StepMark::kDeclared, "step");
    late.push_back(launch());
    if (step % 2)
      complete(late.back(), "k", step); // the others complete after their window is over
  }
  for (size_t i = 1; i < late.size(); i += 2)
    complete(late[i], "k", static_cast<int64_t>(i + 1));
  CHECK(session.core->add_steady(""));
  std::string whole = session.core->encode(0, FileFormat::kProton);
  msgpack::Value file = msgpack::parse(whole);
  msgpack::Value steady = msgpack::parse(file["steady"].text);
  CHECK_EQ(sum_of(file, "time (ns)"), 45);
  CHECK_EQ(sum_of(steady, "time (ns)"), 4 + 5 + 6 + 7);
  CHECK_EQ(sum_of(steady, "count"), 4);
}
