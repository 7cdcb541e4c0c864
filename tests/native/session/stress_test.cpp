// Eight threads enter scopes and launch while others start, clear, encode and remove sessions.
// Meant for the sanitizers, but its invariants hold in any build. An environment variable
// PROTON_BENCH_STRESS multiplies the iterations for a longer hunt.
#include "session/stress.h"

#include <cstdlib>

#include "calltree/context_tree.h"
#include "calltree/metric_name.h"
#include "check.h"
#include "session/path_check.h"
#include "support/error.h"
#include "writer/bytes/msgpack_reader.h"

using namespace proton;
using stress::sessions;

namespace {

constexpr uint32_t kThreads = 8;
constexpr FileFormat kFormats[] = {FileFormat::kProton, FileFormat::kHatchet,
                                   FileFormat::kHatchetCompact, FileFormat::kHatchetMsgpack};

uint32_t iterations() {
  const char *factor = std::getenv("PROTON_BENCH_STRESS");
  return 600 * static_cast<uint32_t>(factor ? std::max(1, std::atoi(factor)) : 1);
}

int start(ContextSource source = ContextSource::kShadow, bool records_wall = false) {
  int id = sessions().add("stress", source, records_wall);
  sessions().activate(id);
  return id;
}

// Kernels of the phase that stand on a path which is not theirs; prints the first ones.
uint64_t check_paths(int id, uint32_t phase) {
  stress::PathCheck check;
  msgpack::Value root =
      msgpack::parse(sessions().encode(id, phase, FileFormat::kHatchetMsgpack))[0];
  check.visit(root);
  for (size_t i = 0; i < check.misplaced.size() && i < 3; ++i)
    std::fprintf(stderr, "misplaced: %s\n", check.misplaced[i].c_str());
  CHECK(check.misplaced.empty());
  return check.kernels;
}

void encode_all(int id, uint32_t phase) {
  for (FileFormat format : kFormats)
    CHECK(!sessions().encode(id, phase, format).empty());
}

// Sessions come, pause and go, some from a thread that ends before they do and leaves a scope open.
void churn_sessions(const stress::Crew &crew) {
  ShadowStack &stack = this_thread().stack;
  for (uint32_t round = 0; crew.works() && round < 100'000; ++round) {
    std::string name = "lead." + std::to_string(round);
    int id = -1;
    auto open = [&] {
      id = start(round % 2 == 0 ? ContextSource::kShadow : ContextSource::kPython, round % 3 == 0);
      open_scope(hashed(name), FrameKind::kScope, situation());
    };
    if (round % 4 == 0)
      std::thread(open).join();
    else
      open();
    sessions().deactivate(id);
    sessions().activate(id);
    encode_all(id, 0);
    if (stack.depth() != 0)
      close_top(situation());
    sessions().remove(id);
  }
}

// One session's phases advance and are cleared, newest included.
void churn_phases(const stress::Crew &crew, int id) {
  ShadowStack &stack = this_thread().stack;
  for (uint32_t round = 0; crew.works() && round < 100'000; ++round) {
    std::string name = "lead.phase." + std::to_string(round);
    stack.push(hashed(name), FrameKind::kScope, situation());
    uint32_t phase = sessions().advance_phase(id);
    sessions().is_phase_complete(id, phase - 1);
    check_paths(id, phase - 1);
    sessions().clear_phase(id, round % 2 == 0 ? phase - 1 : phase, round % 3 == 0);
    stack.pop(situation());
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
  int id = start();
  stress::Crew crew(done, kThreads, iterations());
  std::thread sessions_come_and_go([&] { churn_sessions(crew); });
  crew.join();
  sessions_come_and_go.join();
  RecordCounts counts = sessions().counts(id);
  CHECK_EQ(counts.launches, done.launches.load());
  CHECK_EQ(counts.records, done.kernels.load());
  CHECK_EQ(counts.failed, done.failed.load());
  CHECK_EQ(counts.dropped, done.impossible.load());
  CHECK(counts.ranges >= done.ops); // and the scopes that a session wanted timed
  CHECK(counts.is_complete());
  std::map<std::string, uint64_t> losses = sessions().losses(id);
  CHECK_EQ(losses.size(), 1);
  CHECK_EQ(losses["kernel record with end before start"], done.impossible.load());
  msgpack::Value root = msgpack::parse(sessions().encode(id, 0, FileFormat::kHatchetMsgpack))[0];
  CHECK_EQ(metric_sum(root, "count"), done.kernels.load() + done.ops.load());
  CHECK_EQ(metric_sum(root, "time (ns)"), done.kernel_ns.load() + done.op_ns.load());
  CHECK_EQ(metric_sum(root, "flops"), done.metrics.load());
  CHECK(check_paths(id, 0) > 0);
  sessions().remove(id);
}

TEST(phases_and_sessions_that_come_and_go_leave_nothing_and_mix_nothing) {
  size_t names = live_name_count() - MetricName::count();
  stress::Totals done;
  stress::Crew crew(done, kThreads, iterations());
  int id = -1;
  std::thread sessions_come_and_go([&] { churn_sessions(crew); });
  std::thread phases_come_and_go([&] {
    id = start();
    churn_phases(crew, id);
  });
  crew.join();
  sessions_come_and_go.join();
  phases_come_and_go.join();
  RecordCounts counts = sessions().counts(id);
  CHECK(counts.is_complete());
  CHECK(counts.launches <= done.launches);
  for (uint32_t phase : sessions().live_phases(id))
    check_paths(id, phase);
  sessions().remove(id);
  CHECK_EQ(sessions().active_count(), 0);
  CHECK(Aggregator::instance().epochs.empty());
  CHECK_EQ(Aggregator::instance().launches.size(), 0);
  CHECK_EQ(ContextTree::instance().live_count(), 0);
  CHECK_EQ(live_name_count() - MetricName::count(), names);
}

TEST(threads_that_come_and_go_share_few_states) {
  constexpr uint32_t kRounds = 30;
  stress::Totals done;
  int id = start();
  for (uint32_t round = 0; round < kRounds; ++round)
    stress::Crew(done, kThreads, 5).join();
  size_t states = 0;
  for_each_thread([&](ThreadState &thread) {
    ++states;
    CHECK_EQ(thread.stack.depth(), 0);
  });
  CHECK(states <= 2 * kThreads + 8);
  sessions().drain();
  CHECK_EQ(sessions().counts(id).launches, done.launches.load());
  CHECK(sessions().counts(id).is_complete());
  sessions().remove(id);
  CHECK_EQ(ContextTree::instance().live_count(), 0);
}
