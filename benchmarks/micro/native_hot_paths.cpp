// What the hot paths cost inside the core, without Python: `make bench-native`.
//
// Each is measured in turn with something that a reader can judge: every round measures both, in
// alternating order, in time that the thread ran. The ratio is that within a round: its median with
// the 95 % interval that its order statistics give.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "calltree/call_path_tree.h"
#include "calltree/context_tree.h"
#include "context/thread/host_range.h"
#include "context/thread/thread_state.h"
#include "session/session_registry.h"
#include "support/clock.h"

using namespace proton;

namespace {

constexpr int kRounds = 101;
constexpr int kCalls = 2048;

using Arm = void (*)(); ///< kCalls times what is measured

int64_t thread_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// The compiler may not assume that the value is unused.
template <typename T> void keep(const T &value) { asm volatile("" : : "g"(&value) : "memory"); }

std::vector<std::string> numbered(const char *prefix, int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i)
    names.push_back(prefix + std::to_string(i));
  return names;
}

// Names that no call had before, ready when the clock starts.
std::vector<std::string> g_names;
void renew_names() {
  static int generation = 0;
  g_names = numbered(("request " + std::to_string(generation++) + "/").c_str(), kCalls);
}

[[gnu::noinline]] void empty_function() { asm volatile(""); }

void empty_calls() {
  for (int i = 0; i < kCalls; ++i)
    empty_function();
}

void clock_pairs() {
  for (int i = 0; i < kCalls; ++i) {
    keep(monotonic_ns());
    keep(monotonic_ns());
  }
}

void one_scope(HashedName name) {
  open_scope(name, FrameKind::kScope, session_state());
  close_top(session_state());
}

void scopes() {
  static const HashedName name = hashed("scope");
  for (int i = 0; i < kCalls; ++i)
    one_scope(name);
}

const std::vector<std::string> &few_names() {
  static const std::vector<std::string> names = numbered("layer ", 8);
  return names;
}

void scopes_of_few_names() {
  static const std::vector<HashedName> names = [] {
    std::vector<HashedName> all;
    for (const std::string &name : few_names())
      all.push_back(hashed(name));
    return all;
  }();
  for (size_t i = 0; i < kCalls; ++i)
    one_scope(names[i % names.size()]);
}

void map_lookups() {
  static const std::unordered_map<std::string, int> map = [] {
    std::unordered_map<std::string, int> all;
    for (const std::string &name : few_names())
      all.emplace(name, 0);
    return all;
  }();
  for (size_t i = 0; i < kCalls; ++i)
    keep(map.find(few_names()[i % few_names().size()])->second);
}

void ranges() {
  for (int i = 0; i < kCalls; ++i)
    exit_range(enter_range("aten::add", FrameKind::kOp), RangeKind::kOp, {0, 1, 1}, -1);
}

// The consumer's share, which takes the records out of the log, is part of the figure; the kernels
// come at the end, as a vendor's buffer does.
void launches() {
  static std::vector<KernelRecord> kernels(kCalls);
  for (KernelRecord &kernel : kernels) {
    kernel.correlation_id = next_correlation_id();
    kernel.name = "kernel";
    Aggregator::instance().launched(kernel.correlation_id);
  }
  Aggregator::instance().complete(kernels);
}

void locked_queue() {
  static std::mutex mutex;
  static std::deque<LaunchRecord> queue;
  for (int i = 0; i < kCalls; ++i) {
    std::lock_guard lock(mutex);
    queue.emplace_back();
  }
  for (int i = 0; i < kCalls; ++i) {
    std::lock_guard lock(mutex);
    keep(queue.front());
    queue.pop_front();
  }
}

void new_contexts() {
  ContextTree &tree = ContextTree::instance();
  for (const std::string &name : g_names)
    keep(tree.child(0, name, FrameKind::kScope, session_state().generation, session_state().epoch));
}

void new_leaves() {
  static CallPathTree *tree = nullptr;
  delete tree;
  tree = new CallPathTree;
  for (const std::string &name : g_names)
    keep(tree->child(kRootNode, Name(name), FrameKind::kScope));
}

void map_inserts() {
  static std::unordered_map<std::string, ContextId> *map = nullptr;
  delete map;
  map = new std::unordered_map<std::string, ContextId>;
  for (const std::string &name : g_names)
    map->emplace(name, 0);
}

double measured_ns(Arm arm) {
  int64_t start_ns = thread_ns();
  arm();
  return static_cast<double>(thread_ns() - start_ns) / kCalls;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void row(const char *what, Arm ours, const char *against, Arm baseline) {
  std::vector<double> costs, baselines, ratios;
  std::shared_ptr<Session> session = SessionRegistry::instance().add(ContextSource::kShadow, false);
  session->activate();
  for (int round = -1; round < kRounds; ++round) { // the first one warms up
    renew_names();
    bool ours_first = round % 2 == 0;
    double first = measured_ns(ours_first ? ours : baseline);
    double second = measured_ns(ours_first ? baseline : ours);
    if (round < 0)
      continue;
    costs.push_back(ours_first ? first : second);
    baselines.push_back(ours_first ? second : first);
    ratios.push_back(costs.back() / baselines.back());
    session->clear_phase(0, false);
  }
  session->remove();
  std::sort(ratios.begin(), ratios.end());
  // Ranks between which the median of 101 values lies with 95 %: 50.5 -+ 1.96 sqrt(101) / 2.
  static_assert(kRounds == 101);
  std::printf("%-34s %7.1f   %-24s %7.1f   %.3g [%.3g, %.3g]\n", what, median(costs), against,
              median(baselines), ratios[50], ratios[40], ratios[60]);
}

} // namespace

int main() {
  std::printf("%-34s %7s   %-24s %7s   %s\n", "each", "ns", "against", "ns", "ratio");
  row("scope, enter and exit", scopes, "call of an empty function", empty_calls);
  row("scope, eight names in turn", scopes_of_few_names, "unordered_map::find", map_lookups);
  row("operator, enter, exit and record", ranges, "two readings of the clock", clock_pairs);
  row("launch until its kernel is added", launches, "queue under a mutex", locked_queue);
  row("new context, into the shared tree", new_contexts, "unordered_map::emplace", map_inserts);
  row("new row, into a session's tree", new_leaves, "unordered_map::emplace", map_inserts);
}
