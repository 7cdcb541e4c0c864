#include "context/thread/steps.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "context/thread/thread_state.h"
#include "support/clock.h"
#include "support/fork_locks.h"

namespace proton {
namespace {

// A program that has done so many steps of one kind does not turn out to consist of another.
constexpr uint64_t kSettled = 16;
constexpr uint64_t kLeastRepeats = 3;   // of a scope, a layer or a graph not declared as a step
constexpr uint64_t kLeastOptimizer = 2; // the first one ends what came before the first step
constexpr size_t kMostCandidates = 64;
constexpr size_t kMostPeriods = 4096; // of one window
constexpr uint32_t kDeepest = 3;      // scopes around one that may be a step
// Of what has so many steps inside, or lasts so long, the steps inside are the steps.
constexpr uint64_t kMostInside = 32;
constexpr int64_t kLongStep_ns = 1'000'000'000;

std::atomic<uint32_t> g_begun{0};

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

/// Whether the names are equal but for their numbers.
bool is_alike(std::string_view one, std::string_view other) {
  size_t i = 0, j = 0;
  while (i < one.size() && j < other.size()) {
    if (is_digit(one[i]) && is_digit(other[j])) {
      while (i < one.size() && is_digit(one[i]))
        ++i;
      while (j < other.size() && is_digit(other[j]))
        ++j;
    } else if (one[i++] != other[j++]) {
      return false;
    }
  }
  return i == one.size() && j == other.size();
}

struct Mark {
  StepMark kind;
  uint32_t depth;
  const ThreadState *thread; ///< others may be at other steps
  std::string_view name;
};

/// What may turn out to be the steps of the program.
struct Candidate {
  StepMark mark = StepMark::kGraph;
  uint32_t depth = 0;
  const ThreadState *thread = nullptr;
  std::string name;
  uint64_t count = 0;
  int64_t first_ns = 0;

  bool has(const Mark &other) const {
    return mark == other.kind && depth == other.depth && thread == other.thread &&
           is_alike(name, other.name);
  }
  /// The highest makes the steps.
  uint32_t rank() const {
    return static_cast<uint32_t>(mark) * (kDeepest + 1) + (kDeepest - depth);
  }
  /// Whether its marks stand at the ends of steps.
  bool is_at_end() const { return mark >= StepMark::kOptimizer; }
  uint64_t least() const {
    if (mark == StepMark::kOptimizer)
      return kLeastOptimizer;
    return mark > StepMark::kOptimizer ? 1 : kLeastRepeats;
  }
};

bool shows_step(StepMark mark, ShadowStack &stack) {
  if (mark < StepMark::kOptimizer && stack.depth() > kDeepest)
    return false;
  for (uint32_t i = 0; i < stack.depth(); ++i) {
    FrameKind kind = stack.entry(i).kind;
    if (kind == FrameKind::kTest || (kind != FrameKind::kScope && mark < StepMark::kOptimizer))
      return false;
  }
  return true;
}

class Steps {
public:
  static Steps &instance() {
    static Steps *steps = new Steps; // threads of the target may need it
    return *steps;
  }

  void follow(WindowListener listener) {
    std::lock_guard lock(mutex_);
    reset();
    listener_ = listener;
  }

  void mark(const Mark &mark) {
    std::lock_guard lock(mutex_);
    if (!listener_)
      return;
    if (leader_ && leader_->has(mark))
      return begin_step();
    if (leader_ && begun_ >= kSettled && mark.kind < StepMark::kScope)
      return;
    Candidate *found = candidate(mark);
    if (!found || ++found->count < found->least() || (leader_ && !is_better(*found)))
      return;
    leader_ = *found;
    before_ = leader_->count - (leader_->is_at_end() ? 0 : 1);
    begun_ = 0;
    open_ = {};
    whole_.reset();
    begin_step();
  }

  /// The next step begins the first window.
  void restart() {
    std::lock_guard lock(mutex_);
    before_ += std::exchange(begun_, 0);
    whole_.reset();
  }

  std::optional<StepWindow> whole() {
    std::lock_guard lock(mutex_);
    return whole_;
  }

  uint64_t marks() {
    std::lock_guard lock(mutex_);
    return leader_ ? before_ + begun_ - (leader_->is_at_end() ? 1 : 0) : 0;
  }

  /// The lock was taken before the fork.
  void reset_after_fork() noexcept {
    listener_ = nullptr;
    reset();
  }

private:
  Steps() { guard_across_fork(mutex_, LockRank::kSteps); }

  void reset() {
    candidates_.clear();
    leader_.reset();
    whole_.reset();
    begun_ = 0;
  }

  /// Null where there are too many that came twice.
  Candidate *candidate(const Mark &mark) {
    auto found = std::find_if(candidates_.begin(), candidates_.end(),
                              [&](const Candidate &each) { return each.has(mark); });
    if (found != candidates_.end())
      return &*found;
    if (candidates_.size() >= kMostCandidates) {
      auto once = [](const Candidate &each) { return each.count < 2; };
      auto oldest = std::find_if(candidates_.begin(), candidates_.end(), once);
      if (oldest == candidates_.end())
        return nullptr;
      candidates_.erase(oldest);
    }
    return &candidates_.emplace_back(
        Candidate{mark.kind, mark.depth, mark.thread, std::string(mark.name), 0, monotonic_ns()});
  }

  bool is_better(const Candidate &other) const {
    if (other.rank() <= leader_->rank())
      return false;
    uint64_t over = other.count - 1;
    if (other.mark != leader_->mark || begun_ < kMostInside * over)
      return true;
    return monotonic_ns() - other.first_ns < kLongStep_ns * static_cast<int64_t>(over);
  }

  void begin_step() {
    int64_t now_ns = monotonic_ns();
    if (begun_ != 0)
      add_period(now_ns - last_ns_);
    last_ns_ = now_ns;
    ++begun_;
    g_begun.fetch_add(1, std::memory_order_relaxed);
    bool begins_window = (begun_ & (begun_ - 1)) == 0;
    if (!begins_window)
      return;
    if (begun_ != 1) {
      open_.end_ns = now_ns;
      whole_ = std::move(open_);
    }
    open_ = {leader_->mark, leader_->name, before_ + begun_, now_ns, 0, 0, {}};
    every_ = 1;
    listener_(begun_ == 1);
  }

  void add_period(int64_t period_ns) {
    ++open_.count;
    if (open_.count % every_ != 0)
      return;
    open_.periods_ns.push_back(period_ns);
    if (open_.periods_ns.size() < kMostPeriods)
      return;
    for (size_t i = 0; i < kMostPeriods / 2; ++i)
      open_.periods_ns[i] = open_.periods_ns[2 * i + 1];
    open_.periods_ns.resize(kMostPeriods / 2);
    every_ *= 2;
  }

  std::mutex mutex_;
  WindowListener listener_ = nullptr;
  std::vector<Candidate> candidates_;
  std::optional<Candidate> leader_;
  uint64_t before_ = 0; ///< steps of its kind before the first that was counted
  uint64_t begun_ = 0;  ///< since then
  int64_t last_ns_ = 0;
  StepWindow open_;
  uint64_t every_ = 1; ///< periods of the open window, of which one is kept
  std::optional<StepWindow> whole_;
};

} // namespace

void follow_steps(WindowListener listener) { Steps::instance().follow(listener); }

void mark_step(StepMark mark, std::string_view name) noexcept {
  try {
    ThreadState &thread = this_thread();
    if (mark == StepMark::kScope && thread.tasks.on_stack())
      return; // requests of a server overlap
    uint32_t depth = mark == StepMark::kScope ? thread.stack.depth() : 0;
    if (shows_step(mark, thread.stack))
      Steps::instance().mark({mark, depth, &thread, name});
  } catch (...) { // no memory: the step before goes on
  }
}

void restart_steps() { Steps::instance().restart(); }

std::optional<StepWindow> whole_window() { return Steps::instance().whole(); }

uint32_t step_number() noexcept { return g_begun.load(std::memory_order_relaxed); }

uint64_t step_marks() { return Steps::instance().marks(); }

void forget_steps_after_fork() noexcept { Steps::instance().reset_after_fork(); }

} // namespace proton
