#include "collector/cpu/op_stack.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "calltree/context_tree.h"
#include "check.h"
#include "context/thread/thread_state.h"
#include "support/tick_clock.h"

using namespace proton;

namespace {

// A session with the CPU collector, while it lives.
struct Listening {
  Listening() {
    SessionState now;
    now.epoch = now.generation = 1;
    now.active = true;
    publish_session_state(now);
    set_op_depth(2);
    set_ops_enabled(true);
  }
  ~Listening() {
    set_ops_enabled(false);
    publish_session_state({});
  }
};

struct Range {
  std::string path;
  RangeRecord record;
};

// The ranges that this thread recorded since the last call.
std::vector<Range> ranges() {
  std::vector<Range> found;
  this_thread().host.consume([&](const HostEntry &noted) {
    if (noted.kind() != HostEntryKind::kRange)
      return;
    const RangeRecord &record = noted.range;
    if (record.kind != RangeKind::kOp && record.kind != RangeKind::kKernel)
      return; // scopes that were seen
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

// Takes the place of torch's RecordFunction: an object with a name, at an address of its own.
struct Operator {
  const char *name;
};
const char *name_of(const void *token) { return static_cast<const Operator *>(token)->name; }

void begin(const Operator &op, OpKind kind = OpKind::kOperator) { begin_op(&op, kind, name_of); }
void end(const Operator &op) { end_op(&op); }

} // namespace

TEST(a_range_says_when_it_ended_and_on_which_thread_it_began) {
  Listening listening;
  int64_t before_ns = TickClock::now_ns();
  int token = 0;
  begin_op(&token, OpKind::kOperator, [](const void *) { return "aten::add"; });
  end_op(&token);
  begin_kernel("kernel", -1);
  end_kernel();
  int64_t after_ns = TickClock::now_ns();
  std::vector<Range> found = ranges();
  CHECK_EQ(found.size(), 2);
  for (const Range &range : found) {
    CHECK(range.record.end_ns - range.record.duration_ns >= before_ns);
    CHECK(range.record.end_ns <= after_ns);
    CHECK_EQ(range.record.thread, this_thread().number);
  }
}

TEST(a_range_that_ends_on_another_thread_is_of_the_one_where_it_began) {
  Listening listening;
  int token = 0;
  auto range = begin_user_op(&token, [](const void *) { return "request"; });
  std::vector<Range> found;
  std::thread([&] {
    end_user_op(&token, range.get());
    found = ranges();
  }).join();
  CHECK_EQ(found.size(), 1);
  CHECK_EQ(found[0].record.thread, this_thread().number);
  CHECK(found[0].record.end_ns - found[0].record.duration_ns > 0);
  ranges();
}

TEST(operators_deeper_than_the_limit_are_not_recorded) {
  Listening listening;
  Operator linear{"aten::linear"}, addmm{"aten::addmm"}, copy{"aten::copy_"};
  begin(linear);
  begin(addmm);
  begin(copy);
  end(copy);
  end(addmm);
  end(linear);
  CHECK_EQ(paths(), "/aten::linear/aten::addmm /aten::linear ");
}

TEST(a_limit_of_zero_records_all) {
  Listening listening;
  set_op_depth(0);
  Operator each[4] = {{"a"}, {"b"}, {"c"}, {"d"}};
  for (const Operator &op : each)
    begin(op);
  for (int i = 3; i >= 0; --i)
    end(each[i]);
  CHECK_EQ(ranges().size(), 4);
}

TEST(self_time_is_the_duration_less_that_of_recorded_ranges_inside) {
  Listening listening;
  Operator outer{"outer"}, inner{"inner"}, below{"below the limit"};
  begin(outer);
  begin(inner);
  begin(below);
  end(below);
  end(inner);
  end(outer);
  std::vector<Range> found = ranges();
  CHECK_EQ(found.size(), 2);
  const RangeRecord &first = found[0].record, &second = found[1].record;
  CHECK_EQ(first.self_ns, first.duration_ns);
  CHECK_EQ(second.self_ns, second.duration_ns - first.duration_ns);
}

TEST(nodes_and_wrappers_of_autograd_do_not_count_towards_the_limit) {
  Listening listening;
  Operator wrapper{"autograd::engine::evaluate_function: AddmmBackward0"}, node{"AddmmBackward0"},
      mm{"aten::mm"}, resolve{"aten::resolve"};
  begin(wrapper);
  begin(node, OpKind::kBackward);
  begin(mm);
  begin(resolve);
  for (const Operator *op : {&resolve, &mm, &node, &wrapper})
    end(*op);
  CHECK_EQ(ranges().size(), 4);
}

TEST(muted_operators_are_left_out_and_kernels_are_not) {
  Listening listening;
  Operator copy{"aten::copy_"};
  mute_ops();
  begin(copy);
  end(copy);
  begin_kernel("kernel", -1);
  end_kernel();
  unmute_ops();
  CHECK_EQ(paths(), "/kernel ");
}

TEST(an_end_without_a_begin_is_counted_and_closes_nothing) {
  Listening listening;
  Operator stray{"stray"}, add{"aten::add"};
  take_stray_ops();
  end(stray);
  begin(add);
  end(stray);
  CHECK_EQ(this_thread().stack.depth(), 1);
  end(add);
  CHECK_EQ(paths(), "/aten::add ");
  CHECK_EQ(take_stray_ops(), 2);
}

TEST(an_end_out_of_order_closes_what_began_after_it) {
  Listening listening;
  Operator outer{"outer"}, inner{"inner"};
  take_stray_ops();
  begin(outer);
  begin(inner);
  end(outer);
  CHECK_EQ(paths(), "/outer/inner /outer ");
  end(inner);
  CHECK_EQ(take_stray_ops(), 1);
}

TEST(a_scope_opened_inside_survives_the_end_of_the_operator) {
  Listening listening;
  Operator op{"aten::op"};
  begin(op);
  open_scope(hashed("scope"), FrameKind::kScope, session_state());
  end(op);
  CHECK_EQ(this_thread().stack.depth(), 2);
  CHECK_EQ(paths(), "/aten::op ");
  close_top(session_state());
  CHECK_EQ(this_thread().stack.depth(), 0);
}

TEST(a_range_that_ends_on_another_thread_is_recorded_where_it_began) {
  Listening listening;
  Operator range{"range"}, inside{"inside"}, after{"after"};
  open_scope(hashed("scope"), FrameKind::kScope, session_state());
  std::unique_ptr<UserRange> taken = begin_user_op(&range, name_of);
  CHECK(taken != nullptr);
  begin(inside);
  end(inside);
  std::string elsewhere;
  int64_t self_ns = 0, duration_ns = 0;
  std::thread([&] {
    end_user_op(&range, taken.get());
    std::vector<Range> found = ranges();
    elsewhere = found.size() == 1 ? found[0].path : "not recorded once";
    self_ns = found.empty() ? 0 : found[0].record.self_ns;
    duration_ns = found.empty() ? 0 : found[0].record.duration_ns;
  }).join();
  CHECK_EQ(elsewhere, "/scope/range");
  std::vector<Range> here = ranges();
  CHECK_EQ(here.size(), 1);
  CHECK_EQ(duration_ns - self_ns, here.back().record.duration_ns);
  begin(after);
  end(after);
  close_top(session_state());
  CHECK_EQ(paths(), "/scope/after ");
  CHECK_EQ(this_thread().stack.depth(), 0);
  CHECK_EQ(take_stray_ops(), 0);
}

TEST(a_range_may_end_after_the_thread_where_it_began) {
  Listening listening;
  Operator range{"range"};
  std::unique_ptr<UserRange> taken;
  std::thread([&] { taken = begin_user_op(&range, name_of); }).join();
  end_user_op(&range, taken.get());
  CHECK_EQ(paths(), "/range ");
}

TEST(a_range_that_ended_with_the_one_around_it_is_recorded_once) {
  Listening listening;
  Operator outer{"outer"}, range{"range"};
  begin(outer);
  std::unique_ptr<UserRange> taken = begin_user_op(&range, name_of);
  end(outer);
  end_user_op(&range, taken.get());
  CHECK_EQ(paths(), "/outer/range /outer ");
}

TEST(an_operator_that_ends_on_another_thread_is_counted_and_leaves_its_own) {
  Listening listening;
  Operator moved{"moved"}, next{"next"};
  take_stray_ops();
  begin(moved);
  std::thread([&] { end(moved); }).join();
  begin(next);
  end(next);
  CHECK_EQ(paths(), "/next ");
  CHECK_EQ(take_stray_ops(), 1);
}

TEST(nothing_is_recorded_without_a_session) {
  Operator add{"aten::add"};
  begin(add);
  CHECK(begin_user_op(&add, name_of) == nullptr);
  end(add);
  end(add);
  CHECK_EQ(paths(), "");
  CHECK_EQ(this_thread().stack.depth(), 0);
}

TEST(an_operator_open_when_listening_ends_leaves_no_frame) {
  Operator add{"aten::add"};
  {
    Listening listening;
    begin(add);
  }
  end(add);
  CHECK_EQ(this_thread().stack.depth(), 0);
  CHECK_EQ(paths(), "");
}
