#include <string>

#include "calltree/context_tree.h"
#include "check.h"
#include "collector/cpu/op_stack.h"
#include "context/thread/thread_state.h"

using namespace proton;

namespace {

// A session without the CPU collector, whose paths have operators or layers.
struct Listening {
  Listening(bool wants_ops, bool wants_layers) {
    SessionState now;
    now.epoch = now.generation = 1;
    now.active = true;
    now.wants_ops = wants_ops;
    now.wants_layers = wants_layers;
    publish_session_state(now);
    set_op_depth(kDefaultOpDepth);
  }
  ~Listening() {
    publish_session_state({});
    set_node_numbers({});
  }
};

struct Operator {
  const char *name;
};
const char *name_of(const void *token) { return static_cast<const Operator *>(token)->name; }
void begin(const Operator &op, OpKind kind = OpKind::kOperator) { begin_op(&op, kind, name_of); }
void end(const Operator &op) { end_op(&op); }

/// Where a launch of this thread would stand.
std::string place() {
  std::string text;
  for (const NamedFrame &frame : current_path())
    text += "/" + std::string(frame.name.text());
  return text;
}

/// How many operators the thread recorded.
int recorded() {
  int count = 0;
  this_thread().host.consume([&](const HostEntry &noted) {
    count += noted.kind() == HostEntryKind::kRange && noted.range.kind == RangeKind::kOp ? 1 : 0;
  });
  return count;
}

} // namespace

TEST(operators_that_are_not_timed_are_frames_without_records) {
  Listening listening(true, false);
  Operator linear{"aten::linear"}, addmm{"aten::addmm"}, copy{"aten::copy_"};
  begin(linear);
  begin(addmm);
  begin(copy);
  CHECK_EQ(place(), "/aten::linear/aten::addmm");
  CHECK(current_path().back().kind == FrameKind::kContextOp);
  end(copy);
  end(addmm);
  end(linear);
  CHECK_EQ(place(), "");
  CHECK_EQ(recorded(), 0);
}

TEST(the_depth_of_operators_counts_from_the_innermost_layer) {
  Listening listening(true, true);
  Operator outer{"outer"}, inner{"inner"}, deeper{"deeper"}, below{"below"};
  begin(outer);
  begin(inner);
  OpenLayer layer = enter_layer(layer_below(current_layers(), "Layer"), session_state());
  begin(deeper);
  CHECK_EQ(place(), "/outer/inner/Layer/deeper");
  end(deeper);
  exit_layer(layer);
  begin(below);
  CHECK_EQ(place(), "/outer/inner");
  end(below);
  end(inner);
  end(outer);
}

TEST(the_layers_of_a_node_stand_until_autograd_is_done_with_it) {
  Listening listening(true, true);
  Operator evaluation{"autograd::engine::evaluate_function: MmBackward0"}, node{"MmBackward0"};
  Operator sum{"aten::add"};
  begin(evaluation);
  CHECK_EQ(place(), "");
  begin(node, OpKind::kBackward);
  CHECK_EQ(place(), "/<backward>/MmBackward0");
  end(node);
  begin(sum); // of gradients
  CHECK_EQ(place(), "/<backward>/aten::add");
  end(sum);
  end(evaluation);
  CHECK_EQ(place(), "");
}

TEST(without_operators_a_node_shows_its_layers_alone) {
  Listening listening(false, true);
  Operator node{"MmBackward0"};
  begin(node, OpKind::kBackward);
  CHECK_EQ(place(), "/<backward>");
  end(node);
  CHECK_EQ(place(), "");
}

TEST(without_operators_only_steps_of_optimizers_are_named_ranges) {
  Listening listening(false, true);
  Operator step{"Optimizer.step#Adam.step"}, other{"my range"};
  begin_user_op(&step, name_of);
  CHECK_EQ(place(), "/Optimizer.step#Adam.step");
  begin_user_op(&other, name_of);
  CHECK_EQ(place(), "/Optimizer.step#Adam.step");
  end_user_op(&other, nullptr);
  end_user_op(&step, nullptr);
  CHECK_EQ(place(), "");
}

TEST(timed_operators_of_a_backward_pass_stand_below_its_layers) {
  Listening listening(false, true);
  set_ops_enabled(true);
  Operator evaluation{"autograd::engine::evaluate_function: MmBackward0"}, node{"MmBackward0"};
  begin(evaluation);
  begin(node, OpKind::kBackward);
  CHECK_EQ(place(), "/<backward>/autograd::engine::evaluate_function: MmBackward0/MmBackward0");
  end(node);
  end(evaluation);
  CHECK_EQ(place(), "");
  CHECK_EQ(recorded(), 2);
  set_ops_enabled(false);
}
