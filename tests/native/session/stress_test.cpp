// Eight threads enter scopes and launch while others start, clear, encode and remove sessions.
// Meant for the sanitizers, but its invariants hold in any build. An environment variable
// PROTON_BENCH_STRESS multiplies the iterations for a longer hunt.
#include "session/stress.h"

#include <cstdlib>

#include "calltree/context_tree.h"
#include "calltree/metric_columns.h"
#include "check.h"
#include "session/path_check.h"
#include "support/error.h"
#include "tree_value.h"
#include "writer/bytes/msgpack_reader.h"

using namespace proton;
using stress::sessions;

namespace {

constexpr uint32_t kThreads = 8;

uint32_t iterations() {
  const char *factor = std::getenv("PROTON_BENCH_STRESS");
  return 600 * static_cast<uint32_t>(factor ? std::max(1, std::atoi(factor)) : 1);
}

std::shared_ptr<Session> start(ContextSource source = ContextSource::kShadow,
                               bool records_wall = false) {
  std::shared_ptr<Session> session = sessions().add(source, records_wall);
  session->activate();
  return session;
}

// Kernels of the phase that stand on a path which is not theirs; prints the first ones.
uint64_t check_paths(Session &session, uint32_t phase) {
  stress::PathCheck check;
  msgpack::Value root = tree_value(session, phase);
  check.visit(root);
  for (size_t i = 0; i < check.misplaced.size() && i < 3; ++i)
    std::fprintf(stderr, "misplaced: %s\n", check.misplaced[i].c_str());
  CHECK(check.misplaced.empty());
  return check.kernels;
}

void encode_all(Session &session, uint32_t phase) {
  CHECK(!session.encode(phase, FileFormat::kProton).empty());
}

// Sessions come, pause and go, some from a thread that ends before they do and leaves a scope open.
void churn_sessions(const stress::Crew &crew) {
  ShadowStack &stack = this_thread().stack;
  for (uint32_t round = 0; crew.works() && round < 100'000; ++round) {
    std::string name = "lead." + std::to_string(round);
    std::shared_ptr<Session> session;
    auto open = [&] {
      session =
          start(round % 2 == 0 ? ContextSource::kShadow : ContextSource::kPython, round % 3 == 0);
      open_scope(hashed(name), FrameKind::kScope, session_state());
    };
    if (round % 4 == 0)
      std::thread(open).join();
    else
      open();
    session->deactivate();
    session->activate();
    encode_all(*session, 0);
    if (stack.depth() != 0)
      close_top(session_state());
    session->remove();
  }
}

// One session's phases advance and are cleared, newest included.
void churn_phases(const stress::Crew &crew, Session &session) {
  ShadowStack &stack = this_thread().stack;
  for (uint32_t round = 0; crew.works() && round < 100'000; ++round) {
    std::string name = "lead.phase." + std::to_string(round);
    stack.push(hashed(name), FrameKind::kScope, session_state());
    uint32_t phase = session.advance_phase();
    session.is_phase_complete(phase - 1);
    check_paths(session, phase - 1);
    session.clear_phase(round % 2 == 0 ? phase - 1 : phase, round % 3 == 0);
    stack.pop(session_state());
  }
}

int64_t metric_sum(const msgpack::Value &node, const std::string &name) {
  auto found = node["metrics"].entries.find(name);
  int64_t sum = found == node["metrics"].entries.end() ? 0 : found->second.integer;
  for (const msgpack::Value &child : node["children"].items)
    sum += metric_sum(child, name);
  return sum;
}

} // namespace

TEST(a_session_that_lasts_holds_exactly_what_the_threads_did) {
  stress::Totals done;
  std::shared_ptr<Session> session = start();
  stress::Crew crew(done, kThreads, iterations());
  std::thread sessions_come_and_go([&] { churn_sessions(crew); });
  crew.join();
  sessions_come_and_go.join();
  RecordCounts counts = session->counts();
  CHECK_EQ(counts.launches, done.launches.load());
  CHECK_EQ(counts.records, done.kernels.load());
  CHECK_EQ(counts.failed, done.failed.load());
  CHECK_EQ(counts.dropped, done.impossible.load());
  CHECK(counts.ranges >= done.ops); // and the scopes that a session wanted timed
  CHECK(counts.is_complete());
  std::map<std::string, uint64_t> losses = session->losses();
  CHECK_EQ(losses.size(), 1);
  CHECK_EQ(losses["kernel record with end before start"], done.impossible.load());
  msgpack::Value root = tree_value(*session);
  CHECK_EQ(metric_sum(root, "count"), done.kernels.load() + done.ops.load());
  CHECK_EQ(metric_sum(root, "time (ns)"), done.kernel_ns.load() + done.op_ns.load());
  CHECK_EQ(metric_sum(root, "flops"), done.metrics.load());
  CHECK(check_paths(*session, 0) > 0);
  session->remove();
}

TEST(phases_and_sessions_that_come_and_go_leave_nothing_and_mix_nothing) {
  size_t names = live_name_count() - MetricName::count();
  stress::Totals done;
  stress::Crew crew(done, kThreads, iterations());
  std::shared_ptr<Session> session;
  std::thread sessions_come_and_go([&] { churn_sessions(crew); });
  std::thread phases_come_and_go([&] {
    session = start();
    churn_phases(crew, *session);
  });
  crew.join();
  sessions_come_and_go.join();
  phases_come_and_go.join();
  RecordCounts counts = session->counts();
  CHECK(counts.is_complete());
  CHECK(counts.launches <= done.launches);
  for (uint32_t phase : session->live_phases())
    check_paths(*session, phase);
  session->remove();
  CHECK_EQ(sessions().active_count(), 0);
  CHECK(Aggregator::Held().epochs().trim().empty());
  CHECK_EQ(Aggregator::Held().launches().size(), 0);
  CHECK_EQ(ContextTree::instance().live_count(), 0);
  CHECK_EQ(live_name_count() - MetricName::count(), names);
}

TEST(threads_that_come_and_go_share_few_states) {
  constexpr uint32_t kRounds = 30;
  stress::Totals done;
  std::shared_ptr<Session> session = start();
  for (uint32_t round = 0; round < kRounds; ++round)
    stress::Crew(done, kThreads, 5).join();
  size_t states = 0;
  for_each_thread([&](ThreadState &thread) {
    ++states;
    CHECK_EQ(thread.stack.depth(), 0);
  });
  CHECK(states <= 2 * kThreads + 8);
  Aggregator::Held().drain();
  CHECK_EQ(session->counts().launches, done.launches.load());
  CHECK(session->counts().is_complete());
  session->remove();
  CHECK_EQ(ContextTree::instance().live_count(), 0);
}
