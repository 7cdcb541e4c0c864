#include "aggregate/tree/session_tree.h"

#include "calltree/call_path_tree.h"
#include "calltree/context_tree.h"
#include "check.h"
#include "record/code_table.h"
#include "record/device.h"
#include "support/error.h"

using namespace proton;

namespace {

ContextId frame(ContextId parent, const char *name, FrameKind kind, uint32_t generation = 1) {
  return ContextTree::instance().child(parent, name, kind, generation, 1);
}

KernelRecord kernel(const char *name, int64_t duration_ns) {
  KernelRecord record;
  record.name = name;
  record.end_ns = duration_ns;
  return record;
}

// Every node that has time, as "path=time " in pre-order.
struct Times {
  const CallPathTree &tree;
  std::vector<std::string> path;
  std::string text;

  void enter(NodeIndex node, uint32_t) {
    path.emplace_back(tree.nodes()[node].name.text());
    for (const MetricColumn &column : tree.metrics().columns())
      if (column.name == "time (ns)" && column.has(node))
        text += joined() + "=" + std::to_string(column.ints[node]) + " ";
  }
  void leave(NodeIndex, uint32_t) { path.pop_back(); }
  std::string joined() const {
    std::string all;
    for (size_t i = 1; i < path.size(); ++i)
      all += (i == 1 ? "" : "/") + path[i];
    return all;
  }
};

std::string times(const SessionTree &session, uint32_t phase = 0) {
  Times visitor{*session.find(phase), {}, {}};
  session.find(phase)->walk(visitor);
  return visitor.text;
}

// The same of another metric of integers.
std::string values(SessionTree &session, std::string_view metric) {
  struct Walk {
    const CallPathTree &tree;
    std::string_view metric;
    std::vector<std::string> path{};
    std::string text{};
    void enter(NodeIndex node, uint32_t) {
      path.emplace_back(tree.nodes()[node].name.text());
      for (const MetricColumn &column : tree.metrics().columns())
        if (column.name == metric && column.has(node)) {
          for (size_t i = 1; i < path.size(); ++i)
            text += (i == 1 ? "" : "/") + path[i];
          text += "=" + std::to_string(column.ints[node]) + " ";
        }
    }
    void leave(NodeIndex, uint32_t) { path.pop_back(); }
  };
  Walk visitor{session.tree(0), metric};
  session.tree(0).walk(visitor);
  return visitor.text;
}

Capture at(ContextId shadow, ContextId python = 0) { return {shadow, python, 1}; }

LaunchRecord launch(ContextId shadow, ContextId python = 0) {
  LaunchRecord record;
  record.correlation_id = 1;
  record.at = at(shadow, python);
  return record;
}

} // namespace

TEST(kernels_stand_below_the_scopes_they_were_launched_in) {
  SessionTree session(ContextSource::kShadow, 1, false);
  ContextId outer = frame(0, "outer", FrameKind::kScope);
  session.add_kernel(0, launch(outer), kernel("add", 10));
  session.add_kernel(0, launch(frame(outer, "inner", FrameKind::kScope)), kernel("add", 5));
  session.add_kernel(0, launch(outer), kernel("add", 2));
  CHECK_EQ(times(session), "outer/add=12 outer/inner/add=5 ");
}

TEST(runs_are_kept_once_asked_for_until_they_are_taken) {
  SessionTree session(ContextSource::kShadow, 1, false);
  LaunchRecord first = launch(frame(0, "s", FrameKind::kScope));
  session.add_kernel(0, first, kernel("before", 1));
  session.keep_runs();
  first.correlation_id = 7;
  first.called_ns = 3;
  session.add_kernel(0, first, kernel("add", 10));
  std::vector<DeviceRun> runs = session.take_runs();
  CHECK_EQ(runs.size(), 1);
  CHECK_EQ(runs[0].name.text(), "add");
  CHECK_EQ(runs[0].launch, 7);
  CHECK_EQ(runs[0].called_ns, 3);
  CHECK_EQ(runs[0].end_ns, 10);
  CHECK(session.take_runs().empty());
}

TEST(frames_opened_before_the_session_are_not_on_its_paths) {
  SessionTree session(ContextSource::kShadow, 5, false);
  ContextId before = frame(0, "before", FrameKind::kScope, 4);
  ContextId after = frame(before, "after", FrameKind::kScope, 5);
  session.add_kernel(0, launch(after), kernel("k", 1));
  session.add_kernel(0, launch(before), kernel("k", 2));
  CHECK_EQ(times(session), "after/k=1 k=2 ");
}

TEST(a_launch_that_a_hook_named_keeps_that_name) {
  SessionTree session(ContextSource::kShadow, 1, false);
  ContextId named = frame(frame(0, "s", FrameKind::kScope), "pretty", FrameKind::kKernel);
  session.add_kernel(0, launch(named), kernel("_Z6mangled", 3));
  CHECK_EQ(times(session), "s/pretty=3 ");
}

TEST(metrics_of_a_named_launch_meet_its_kernel_record_on_one_node) {
  SessionTree session(ContextSource::kShadow, 1, false);
  ContextId named = frame(0, "pretty", FrameKind::kKernel);
  session.add_metric(0, at(named), {MetricName::of("flops", Aggregation::kInclusive), 8.0});
  session.add_kernel(0, launch(named), kernel(nullptr, 3));
  CHECK_EQ(session.find(0)->nodes().size(), 2);
}

TEST(a_kernel_that_a_hook_renamed_keeps_its_raw_name) {
  SessionTree session(ContextSource::kShadow, 1, false);
  VariantRecord variant;
  KernelRecord record = kernel("mm_kernel", 4);
  record.variant = &variant;
  session.add_kernel(0, launch(frame(0, "mm_64x64", FrameKind::kKernel)), record);
  session.add_kernel(0, launch(frame(0, "mm_kernel", FrameKind::kKernel)), record);
  const std::vector<Variant> &variants = session.find(0)->variants();
  CHECK_EQ(variants.size(), 2);
  CHECK_EQ(variants[0].raw_name, "mm_kernel");
  CHECK_EQ(variants[1].raw_name, "");
}

TEST(what_the_launch_knew_of_the_code_goes_before_the_record) {
  SessionTree session(ContextSource::kShadow, 1, false);
  VariantRecord variant;
  variant.code_hash = 1;
  KernelRecord record = kernel("mm", 4);
  record.variant = &variant;
  LaunchRecord tuned = launch(0);
  tuned.code = intern_code(0x77, "BLOCK=64, num_warps=4");
  session.add_kernel(0, tuned, record);
  const std::vector<Variant> &variants = session.find(0)->variants();
  CHECK_EQ(variants.size(), 1);
  CHECK_EQ(variants[0].code_hash, 0x77);
  CHECK_EQ(variants[0].config, "BLOCK=64, num_warps=4");
}

TEST(a_kernel_without_any_name_is_called_unknown) {
  SessionTree session(ContextSource::kShadow, 1, false);
  session.add_kernel(0, launch(0), kernel(nullptr, 3));
  CHECK_EQ(times(session), "<unknown kernel>=3 ");
}

TEST(a_python_session_shows_frames_and_operators_but_no_scopes) {
  SessionTree session(ContextSource::kPython, 1, false);
  ContextId scope = frame(0, "scope", FrameKind::kScope);
  ContextId op = frame(scope, "aten::add", FrameKind::kOp);
  ContextId python =
      frame(frame(0, "a.py:1@main", FrameKind::kPython), "a.py:9@f", FrameKind::kPython);
  session.add_kernel(0, launch(op, python), kernel("k", 4));
  CHECK_EQ(times(session), "a.py:1@main/a.py:9@f/aten::add/k=4 ");
}

TEST(a_shadow_session_ignores_python_frames_that_another_session_wanted) {
  SessionTree session(ContextSource::kShadow, 1, false);
  ContextId python = frame(0, "a.py:1@main", FrameKind::kPython);
  session.add_kernel(0, launch(frame(0, "s", FrameKind::kScope), python), kernel("k", 4));
  CHECK_EQ(times(session), "s/k=4 ");
}

TEST(phases_are_apart) {
  SessionTree session(ContextSource::kShadow, 1, false);
  session.add_kernel(0, launch(0), kernel("k", 4));
  session.add_kernel(1, launch(0), kernel("k", 6));
  CHECK_EQ(times(session, 0), "k=4 ");
  CHECK_EQ(times(session, 1), "k=6 ");
  session.drop_phase(0);
  CHECK(session.find(0) == nullptr);
  CHECK(session.find(1) != nullptr);
}

TEST(operators_hold_their_self_time_and_kernels_their_variant) {
  SessionTree session(ContextSource::kShadow, 1, false);
  RangeRecord op;
  op.at = at(frame(0, "aten::add", FrameKind::kOp));
  op.kind = RangeKind::kOp;
  op.duration_ns = 100;
  op.self_ns = 60;
  session.add_range(0, op);
  VariantRecord variant;
  variant.grid[0] = 12;
  RangeRecord run;
  run.at = at(frame(op.at.shadow, "interpreted", FrameKind::kKernel));
  run.kind = RangeKind::kKernel;
  run.variant = intern_variant(variant);
  run.self_ns = 40;
  session.add_range(0, run);
  CHECK_EQ(times(session), "aten::add=60 aten::add/interpreted=40 ");
  CHECK_EQ(session.find(0)->variants()[0].grid[0], 12);
}

TEST(wall_time_of_scopes_is_recorded_only_where_asked_for) {
  SessionTree asks(ContextSource::kShadow, 1, true), does_not(ContextSource::kShadow, 1, false);
  RangeRecord scope;
  scope.at = at(frame(0, "s", FrameKind::kScope));
  scope.duration_ns = 9;
  asks.add_range(0, scope);
  does_not.add_range(0, scope);
  const MetricColumn &wall = asks.find(0)->metrics().columns()[0];
  CHECK_EQ(wall.name, "wall (ns)");
  CHECK(wall.aggregation == Aggregation::kExclusive);
  CHECK_EQ(wall.ints[1], 9);
  CHECK(does_not.find(0) == nullptr || does_not.find(0)->metrics().columns().empty());
}

TEST(every_run_of_a_kernel_is_a_sample_of_its_distribution) {
  SessionTree session(ContextSource::kShadow, 1, false);
  for (int64_t duration : {3, 5, 7})
    session.add_kernel(0, launch(0), kernel("k", duration));
  const MetricColumn &time = session.find(0)->metrics().columns()[0];
  CHECK_EQ(time.distributions.at(1).n, 3);
  CHECK_EQ(time.distributions.at(1).max, 7.0);
}

namespace {

HostSample sample(ContextId shadow, ContextId python, int64_t start_ns, int64_t end_ns,
                  bool is_main = true) {
  return {at(shadow, python), is_main, start_ns, end_ns};
}

} // namespace

TEST(samples_inside_of_timed_work_are_its_own_time_and_others_have_their_frames) {
  SessionTree session(ContextSource::kShadow, 1, true);
  session.sample_host();
  ContextId scope = frame(0, "step", FrameKind::kScope);
  ContextId python =
      frame(frame(0, "x.py:1@<module>", FrameKind::kPython), "x.py:5@load", FrameKind::kPython);
  session.add_sample(0, sample(scope, 0, 0, 10));
  session.add_sample(0, sample(0, python, 10, 30));
  session.add_sample(0, sample(0, python, 30, 35));
  session.add_sample(0, sample(0, 0, 35, 36));
  session.add_sample(0, sample(0, python, 0, 7, false));
  CHECK_EQ(values(session, kHostWall),
           "step=10 <not recorded>=1 <not recorded>/x.py:1@<module>/x.py:5@load=25 ");
  CHECK_EQ(values(session, kOtherThreads), "<not recorded>/x.py:1@<module>/x.py:5@load=7 ");
  CHECK_EQ(values(session, kIdle), "");
}

TEST(where_scopes_have_no_times_all_samples_stand_below_one_row_and_say_what_was_idle) {
  SessionTree session(ContextSource::kShadow, 1, false);
  session.sample_host();
  ContextId scope = frame(0, "step", FrameKind::kScope);
  ContextId python = frame(0, "x.py:1@<module>", FrameKind::kPython);
  session.add_sample(0, sample(scope, python, 0, 100));
  KernelRecord record = kernel("add", 40);
  record.start_ns = 10;
  session.add_kernel(0, launch(scope), record);
  CHECK_EQ(values(session, kHostWall), "<not recorded>/x.py:1@<module>=100 ");
  CHECK_EQ(values(session, kIdle), "<not recorded>/x.py:1@<module>=70 ");
  CHECK_EQ(times(session), "step/add=30 ");
  session.add_sample(0,
                     sample(frame(scope, "aten::item", FrameKind::kContextOp), python, 100, 105));
  CHECK_EQ(values(session, kHostWall), "<not recorded>/x.py:1@<module>=100 "
                                       "<not recorded>/x.py:1@<module>/aten::item=5 ");
}
