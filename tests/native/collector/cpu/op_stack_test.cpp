#include "collector/cpu/op_stack.h"

#include <string>
#include <vector>

#include "calltree/context_tree.h"
#include "check.h"
#include "context/thread_state.h"

using namespace proton;

namespace {

// Listens while it lives, with the CPU collector on.
struct Listening {
  Listening() {
    Situation now;
    now.epoch = now.birth = 1;
    now.active = true;
    publish_situation(now);
    set_op_depth(2);
    set_ops_enabled(true);
  }
  ~Listening() {
    set_ops_enabled(false);
    publish_situation({});
  }
};

struct Range {
  std::string path;
  RangeRecord record;
};

// The ranges that this thread recorded since the last call.
std::vector<Range> ranges() {
  std::vector<Range> found;
  this_thread().ranges.consume([&](const RangeRecord &record) {
    std::string path;
    for (ContextId id = record.at.shadow; id != 0; id = ContextTree::instance().node(id).parent)
      path = "/" + std::string(ContextTree::instance().node(id).name.text()) + path;
    found.push_back({path, record});
  });
  return found;
}

std::string paths() {
  std::string all;
  for (const Range &range : ranges())
    all += range.path + " ";
  return all;
}

} // namespace

TEST(operators_deeper_than_the_limit_are_not_recorded) {
  Listening listening;
  for (const char *name : {"aten::linear", "aten::addmm", "aten::copy_"})
    begin_op(name);
  for (int i = 0; i < 3; ++i)
    end_op();
  CHECK_EQ(paths(), "/aten::linear/aten::addmm /aten::linear ");
}

TEST(self_time_is_the_duration_less_that_of_recorded_ranges_inside) {
  Listening listening;
  begin_op("outer");
  begin_op("inner");
  begin_op("below the limit");
  end_op();
  end_op();
  end_op();
  std::vector<Range> found = ranges();
  CHECK_EQ(found.size(), 2);
  const RangeRecord &inner = found[0].record, &outer = found[1].record;
  CHECK_EQ(inner.self_ns, inner.duration_ns);
  CHECK_EQ(outer.self_ns, outer.duration_ns - inner.duration_ns);
}

TEST(wrappers_of_autograd_do_not_count_towards_the_limit) {
  Listening listening;
  for (const char *name : {"autograd::engine::evaluate_function: AddmmBackward0", "AddmmBackward0",
                           "aten::mm", "aten::resolve"})
    begin_op(name);
  for (int i = 0; i < 4; ++i)
    end_op();
  CHECK_EQ(ranges().size(), 4);
}

TEST(names_of_autograd_are_told_from_operators) {
  CHECK(is_autograd_wrapper("MyFunctionBackward"));
  CHECK(is_autograd_wrapper("CopyBackwards"));
  CHECK(is_autograd_wrapper("torch::autograd::AccumulateGrad"));
  CHECK(!is_autograd_wrapper("aten::convolution_backward"));
  CHECK(!is_autograd_wrapper("aten::Backward"));
  CHECK(!is_autograd_wrapper(""));
}

TEST(muted_operators_are_left_out_and_kernels_are_not) {
  Listening listening;
  mute_ops();
  begin_op("aten::copy_");
  end_op();
  begin_kernel("kernel", -1);
  end_op();
  unmute_ops();
  CHECK_EQ(paths(), "/kernel ");
}

TEST(an_end_without_a_begin_is_ignored) {
  Listening listening;
  end_op();
  begin_op("aten::add");
  end_op();
  end_op();
  CHECK_EQ(paths(), "/aten::add ");
}

TEST(nothing_is_recorded_while_nobody_listens) {
  begin_op("aten::add");
  end_op();
  CHECK_EQ(paths(), "");
  CHECK_EQ(this_thread().stack.depth(), 0);
}

TEST(an_operator_open_when_listening_ends_leaves_no_frame) {
  {
    Listening listening;
    begin_op("aten::add");
  }
  end_op();
  CHECK_EQ(this_thread().stack.depth(), 0);
  CHECK_EQ(paths(), "");
}
