#include "collector/cpu/op_stack.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "context/host_range.h"
#include "support/clock.h"

namespace proton {
namespace {

struct OpenOp {
  OpenRange range;
  int64_t start_ns = 0;
  int64_t nested_ns = 0; ///< recorded ranges inside
  int32_t variant = -1;
  RangeKind kind = RangeKind::kOp;
  bool counts = false; ///< towards the depth limit
};

struct OpStack {
  std::vector<OpenOp> open;
  uint32_t depth = 0;
  uint32_t muted = 0;
};

OpStack &ops() {
  thread_local OpStack stack;
  return stack;
}

std::atomic<uint32_t> g_max_depth{2};
std::atomic<bool> g_enabled{false};

void begin(std::string_view name, RangeKind kind, int32_t variant) noexcept {
  OpStack &stack = ops();
  try {
    OpenOp op;
    op.kind = kind;
    op.variant = variant;
    bool listens = g_enabled.load(std::memory_order_relaxed) && situation().active;
    bool is_kernel = kind == RangeKind::kKernel;
    bool is_wrapper = !is_kernel && is_autograd_wrapper(name);
    bool has_room =
        is_kernel || is_wrapper || stack.depth < g_max_depth.load(std::memory_order_relaxed);
    bool wanted = listens && has_room && (is_kernel || stack.muted == 0);
    op.counts = wanted && !is_kernel && !is_wrapper;
    if (wanted)
      op.range = enter_range(name, is_kernel ? FrameKind::kKernel : FrameKind::kOp);
    op.start_ns = monotonic_ns();
    stack.open.push_back(op);
    stack.depth += op.counts ? 1 : 0;
  } catch (...) { // no memory for the entry: its end closes the enclosing one early
  }
}

} // namespace

bool is_autograd_wrapper(std::string_view name) noexcept {
  if (name.starts_with("aten::"))
    return false;
  if (name.starts_with("autograd::engine::evaluate_function") ||
      name.starts_with("torch::autograd::"))
    return true;
  // Nodes of the backward graph: AddmmBackward0, MyFunctionBackward, CopyBackwards.
  std::string_view rest = name;
  while (!rest.empty() && rest.back() >= '0' && rest.back() <= '9')
    rest.remove_suffix(1);
  if (rest.ends_with('s'))
    rest.remove_suffix(1);
  return rest.ends_with("Backward");
}

void set_op_depth(uint32_t max_depth) noexcept {
  g_max_depth.store(max_depth, std::memory_order_relaxed);
}

void set_ops_enabled(bool enabled) noexcept { g_enabled.store(enabled, std::memory_order_release); }

void begin_op(std::string_view name) noexcept { begin(name, RangeKind::kOp, -1); }

void begin_kernel(std::string_view name, int32_t variant) noexcept {
  begin(name, RangeKind::kKernel, variant);
}

void end_op() noexcept {
  int64_t end_ns = monotonic_ns();
  OpStack &stack = ops();
  if (stack.open.empty())
    return; // began before this collector listened
  OpenOp op = stack.open.back();
  stack.open.pop_back();
  stack.depth -= op.counts ? 1 : 0;
  int64_t duration_ns = end_ns - op.start_ns;
  int64_t self_ns = std::max<int64_t>(0, duration_ns - op.nested_ns);
  exit_range(op.range, op.kind, duration_ns, self_ns, op.variant);
  if (!stack.open.empty())
    stack.open.back().nested_ns += op.range.is_open ? duration_ns : op.nested_ns;
}

void mute_ops() noexcept { ++ops().muted; }

void unmute_ops() noexcept {
  OpStack &stack = ops();
  stack.muted -= stack.muted != 0 ? 1 : 0;
}

} // namespace proton
