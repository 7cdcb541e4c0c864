#include "collector/cpu/op_stack.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "collector/cpu/op_inputs.h"
#include "context/thread/host_range.h"
#include "context/thread/self_cost.h"
#include "support/tick_clock.h"

namespace proton {
namespace {

/// An operator or kernel between its begin and its end. Unrecorded ones stand here too, so that
/// their ends find them and what is recorded inside goes to the next one around them.
struct OpenOp {
  const void *token = nullptr; ///< null: a kernel
  OpenRange range;             ///< closed: not recorded
  int64_t start_ns = 0;
  int64_t nested_ns = 0; ///< recorded ranges inside
  int32_t variant = -1;
  OpInputs inputs;            ///< its work is dropped where an operator inside has it
  bool counts = false;        ///< towards the depth limit
  bool is_timed = false;      ///< recorded; else it is a frame alone
  bool is_evaluation = false; ///< autograd's frame, opened with its node
  OpenBackward backward;      ///< the layers of that node
  uint32_t outer_base = 0;    ///< of the stack before
  std::shared_ptr<UserRange::Progress> progress; ///< null but for ranges that may end elsewhere
};

struct OpStack {
  std::vector<OpenOp> open;
  uint32_t depth = 0;
  uint32_t base = 0; ///< the depth around the innermost layer: the limit counts from there
  uint32_t muted = 0;
  uint64_t seen_strays = 0;
  size_t working = kNone; ///< the outermost open operator with work: those inside are part of it
  static constexpr size_t kNone = SIZE_MAX;
};

// Initial-exec: one instruction instead of a call per access.
[[gnu::tls_model("initial-exec")]] thread_local OpStack *t_ops = nullptr;
[[gnu::tls_model("initial-exec")]] thread_local bool t_ends = false;

struct Owner {
  ~Owner() {
    t_ops = nullptr;
    t_ends = true;
  }
  std::unique_ptr<OpStack> stack;
};
thread_local Owner t_owner;

std::atomic<uint32_t> g_max_depth{kDefaultOpDepth};
std::atomic<bool> g_enabled{false};
std::atomic<bool> g_inputs_read{false};
std::atomic<WorkListener> g_work_listener{nullptr};
std::atomic<uint64_t> g_strays{0};
StrayEnds g_stray_ends;

/// Null if there is no memory, and while the thread ends.
OpStack *make_ops() noexcept {
  if (t_ends)
    return nullptr;
  try {
    auto stack = std::make_unique<OpStack>();
    stack->open.reserve(64);
    stack->seen_strays = g_stray_ends.posted();
    t_owner.stack = std::move(stack);
    t_ops = t_owner.stack.get();
  } catch (...) { // no memory: nothing is timed on this thread
  }
  return t_ops;
}

OpStack *ops() noexcept { return t_ops ? t_ops : make_ops(); }

void count_strays(uint64_t count) noexcept {
  if (count != 0 && g_enabled.load(std::memory_order_relaxed))
    g_strays.fetch_add(count, std::memory_order_relaxed);
}

/// Removes the operator at `index`; those above stay. Its children's time goes to the next one.
[[gnu::hot]] void take_off(OpStack &stack, size_t index, int64_t contained_ns) noexcept {
  if (stack.working != OpStack::kNone && stack.working >= index) [[unlikely]]
    stack.working = stack.working == index ? OpStack::kNone : stack.working - 1;
  stack.depth -= stack.open[index].counts ? 1 : 0;
  stack.base = stack.open[index].outer_base;
  if (index + 1 == stack.open.size())
    stack.open.pop_back();
  else
    stack.open.erase(stack.open.begin() + static_cast<std::ptrdiff_t>(index));
  if (index == 0)
    return;
  OpenOp &around = stack.open[index - 1];
  around.nested_ns += contained_ns;
  if (around.progress)
    around.progress->nested_ns.store(around.nested_ns, std::memory_order_relaxed);
}

/// Forgets operators of this thread that ended on another one.
void forget_strays(OpStack &stack) noexcept {
  g_stray_ends.visit_since(stack.seen_strays, [&](const void *token) {
    for (size_t i = stack.open.size(); i-- > 0;) {
      if (stack.open[i].token != token)
        continue;
      abandon_range(stack.open[i].range);
      exit_backward(stack.open[i].backward);
      take_off(stack, i, stack.open[i].nested_ns);
      return;
    }
  });
}

/// Ends the newest one.
[[gnu::hot]] void close_newest(OpStack &stack, int64_t end_ns) noexcept {
  OpenOp &op = stack.open.back();
  if (op.inputs.work != kNoWork) [[unlikely]]
    if (WorkListener listener = g_work_listener.load(std::memory_order_acquire))
      listener(op.inputs.work);
  int64_t contained_ns = op.nested_ns;
  if (op.range.is_open() && !op.is_timed) {
    abandon_range(op.range);
  } else if (op.progress && op.progress->is_done.exchange(true)) {
    abandon_range(op.range); // another thread ended it just now
  } else if (op.range.is_open()) {
    contained_ns = end_ns - op.start_ns;
    int64_t self_ns = std::max<int64_t>(0, contained_ns - op.nested_ns);
    RangeKind kind = op.token ? RangeKind::kOp : RangeKind::kKernel;
    if (!exit_range(op.range, kind, {end_ns, contained_ns, self_ns}, op.variant))
      count_strays(1);
  }
  exit_backward(op.backward);
  take_off(stack, stack.open.size() - 1, contained_ns);
}

/// Reads the arguments of the newest operator. What torch's formulas count is the outermost
/// operator with work; one of the same name inside, as autocast makes it, has the types that are
/// computed.
void take_inputs(OpStack &stack, std::string_view name) noexcept {
  OpenOp &op = stack.open.back();
  op.inputs = read_inputs(op.token, name);
  if (op.inputs.work == kNoWork)
    return;
  if (op.inputs.work == kFakeWork) { // so is the one around it, whose tensors wrap these
    op.inputs.work = kNoWork;
    if (stack.working != OpStack::kNone)
      stack.open[stack.working].inputs.work = kNoWork;
    return;
  }
  if (stack.working != OpStack::kNone) {
    OpInputs &outer = stack.open[stack.working].inputs;
    if (outer.work == kNoWork || outer.of_operator != op.inputs.of_operator) {
      op.inputs.work = kNoWork;
      return;
    }
    outer.work = kNoWork;
  }
  stack.working = stack.open.size() - 1;
}

/// Opens the frame of an operator that is timed.
void open_timed(OpenOp &op, std::string_view name) noexcept {
  op.range = enter_range(name, FrameKind::kOp, op.inputs.variant);
  op.is_timed = true;
}

/// Opens the layers of a node that is about to run, around autograd's own frame if there is one.
void begin_node(OpStack &stack, const NodeOfOp &node, NameOf name_of) noexcept {
  OpenOp &op = stack.open.back();
  OpenOp *around = stack.open.size() > 1 ? &stack.open[stack.open.size() - 2] : nullptr;
  if (!around || !around->is_evaluation || around->backward.is_open()) {
    op.backward = enter_backward(node.number, node.thread);
    return;
  }
  around->backward = enter_backward(node.number, node.thread);
  if (around->start_ns != 0) {
    const char *text = name_of(around->token);
    open_timed(*around, text ? text : "");
  }
}

/// Opens the frame of an operator that is not timed.
void open_untimed(OpenOp &op, std::string_view name, OpKind kind,
                  const SessionState &now) noexcept {
  // Torch names the steps of all optimizers so. They stand where layers stand.
  if (kind == OpKind::kUser && now.wants_layers && name.starts_with("Optimizer."))
    op.range = enter_range(name, FrameKind::kLayer);
  else if (now.wants_ops)
    op.range = enter_range(name, FrameKind::kContextOp, op.inputs.variant);
}

/// Ends the operator at `index` and those above it, which should have ended before.
[[gnu::hot]] void close_down_to(OpStack &stack, size_t index) noexcept {
  int64_t end_ns = stack.open[index].start_ns != 0 || index + 1 != stack.open.size()
                       ? TickClock::now_ns()
                       : 0; // nothing of it is recorded
  while (stack.open.size() > index)
    close_newest(stack, end_ns);
}

/// Ends the operator if it stands on this thread's stack.
[[gnu::hot]] bool end_here(const void *token) noexcept {
  OpStack *stack = t_ops;
  if (!stack)
    return false;
  if (g_stray_ends.has_news(stack->seen_strays))
    forget_strays(*stack);
  for (size_t i = stack->open.size(); i-- > 0;) {
    if (stack->open[i].token == token) {
      close_down_to(*stack, i);
      return true;
    }
  }
  return false;
}

} // namespace

bool is_autograd_evaluation(std::string_view name) noexcept {
  return name.starts_with("autograd::engine::evaluate_function");
}

void set_op_depth(uint32_t max_depth) noexcept {
  g_max_depth.store(max_depth == 0 ? UINT32_MAX : max_depth, std::memory_order_relaxed);
}

void set_ops_enabled(bool enabled) noexcept { g_enabled.store(enabled, std::memory_order_release); }

void set_inputs_read(bool are_read) noexcept {
  g_inputs_read.store(are_read, std::memory_order_release);
}

bool are_inputs_read() noexcept { return g_inputs_read.load(std::memory_order_relaxed); }

void set_work_listener(WorkListener listener) noexcept {
  g_work_listener.store(listener, std::memory_order_release);
}

[[gnu::hot]] void begin_op(const void *token, OpKind kind, NameOf name_of,
                           const NodeOfOp &node) noexcept {
  OpStack *stack = ops();
  if (!stack)
    return;
  if (g_stray_ends.has_news(stack->seen_strays))
    forget_strays(*stack);
  try {
    OpenOp &fresh = stack->open.emplace_back();
    fresh.token = token;
    fresh.outer_base = stack->base;
    const SessionState now = session_state();
    const bool is_timed = g_enabled.load(std::memory_order_relaxed);
    const bool links = now.wants_layers && stack->muted == 0;
    if (links && kind == OpKind::kBackward)
      begin_node(*stack, node, name_of);
    if (links && stands_in_layer())
      stack->base = stack->depth;
    bool wanted = stack->depth - stack->base < g_max_depth.load(std::memory_order_relaxed) &&
                  stack->muted == 0 &&
                  (is_timed || now.wants_ops || (links && kind == OpKind::kUser));
    const bool reads = kind != OpKind::kUser && stack->muted == 0 && now.active &&
                       g_inputs_read.load(std::memory_order_relaxed);
    if (!wanted && !reads)
      return;
    OpenOp &op = stack->open.back();
    const char *text = name_of(token);
    std::string_view name = text ? text : "<unnamed operator>";
    if (reads)
      take_inputs(*stack, name);
    if (!wanted)
      return;
    if (name.starts_with("proton_bench::")) // opens or closes a scope of a compiled graph
      return;
    bool is_evaluation = kind == OpKind::kOperator && is_autograd_evaluation(name);
    op.is_evaluation = is_evaluation && links;
    if (!is_timed) {
      if (!is_evaluation)
        open_untimed(op, name, kind, now);
    } else if (op.is_evaluation) {
      op.start_ns = TickClock::now_ns();
      return; // below the layers of its node
    } else {
      open_timed(op, name);
      op.start_ns = op.range.is_open() ? TickClock::now_ns() : 0;
    }
    op.counts = op.range.is_open() && kind == OpKind::kOperator && !is_evaluation;
    stack->depth += op.counts ? 1 : 0;
  } catch (...) { // no memory for the entry: its end is a stray one
  }
}

[[gnu::hot]] void end_op(const void *token) noexcept {
  if (end_here(token))
    return;
  count_strays(1);
  g_stray_ends.post(token);
}

std::unique_ptr<UserRange> begin_user_op(const void *token, NameOf name_of) noexcept {
  begin_op(token, OpKind::kUser, name_of);
  if (!t_ops || t_ops->open.empty())
    return nullptr;
  OpenOp &op = t_ops->open.back();
  if (op.token != token || !op.is_timed || !op.range.is_open())
    return nullptr;
  try {
    auto range = std::make_unique<UserRange>();
    range->path = current_path();
    range->thread = this_thread_number();
    range->start_ns = op.start_ns;
    range->progress = std::make_shared<UserRange::Progress>();
    op.progress = range->progress;
    return range;
  } catch (...) { // no memory: an end on another thread is counted as a stray one
    return nullptr;
  }
}

void end_user_op(const void *token, const UserRange *range) noexcept {
  if (end_here(token))
    return;
  if (!range) {
    count_strays(1);
  } else if (!range->progress->is_done.exchange(true)) {
    RangeTimes times;
    times.end_ns = TickClock::now_ns();
    times.duration_ns = times.end_ns - range->start_ns;
    int64_t nested_ns = range->progress->nested_ns.load(std::memory_order_relaxed);
    times.self_ns = std::max<int64_t>(0, times.duration_ns - nested_ns);
    if (g_enabled.load(std::memory_order_relaxed))
      record_range(range->path, RangeKind::kOp, times, range->thread);
  } else {
    return; // ended with the one around it
  }
  g_stray_ends.post(token);
}

uint64_t take_stray_ops() noexcept { return g_strays.exchange(0, std::memory_order_relaxed); }

void begin_kernel(std::string_view name, int32_t variant) noexcept {
  const TimedCall call;
  OpStack *stack = ops();
  try {
    if (!stack)
      return;
    OpenOp &op = stack->open.emplace_back();
    op.outer_base = stack->base;
    op.variant = variant;
    op.is_timed = true;
    if (g_enabled.load(std::memory_order_relaxed))
      op.range = enter_range(name, FrameKind::kKernel);
    op.start_ns = TickClock::now_ns();
  } catch (...) { // no memory for the entry: the end of an enclosing kernel comes early
  }
}

void end_kernel() noexcept {
  const TimedCall call;
  OpStack *stack = t_ops;
  for (size_t i = stack ? stack->open.size() : 0; i-- > 0;)
    if (!stack->open[i].token)
      return close_down_to(*stack, i);
}

void mute_ops() noexcept {
  if (OpStack *stack = ops())
    ++stack->muted;
}

void unmute_ops() noexcept {
  if (OpStack *stack = t_ops)
    stack->muted -= stack->muted != 0 ? 1 : 0;
}

} // namespace proton
