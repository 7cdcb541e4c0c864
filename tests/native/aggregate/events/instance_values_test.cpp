// Values that the program gives to scopes and launches.
#include "aggregate/events/session_events.h"

#include <thread>

#include "aggregate/consumer/given_values.h"
#include "aggregate/consumer/timeline_session.h"
#include "check.h"
#include "support/tick_clock.h"

using namespace proton;

namespace {

RecordSink &sink() { return Aggregator::instance(); }

UserMetric metric(const char *name, MetricValue value,
                  Aggregation aggregation = Aggregation::kInclusive) {
  return {MetricName::of(name, aggregation), std::move(value)};
}

/// The calling thread adds a value, where it stands if nothing else is said.
void add(const UserMetric &value, const Capture &at = capture_current()) {
  give_values(at, {&value, 1}, true);
}

/// A launch inside the frame that a launch hook puts around it.
uint64_t named_launch(const char *name, int64_t flops) {
  ShadowStack &stack = this_thread().stack;
  stack.push(hashed(name), FrameKind::kKernel, session_state());
  if (flops != 0)
    add(metric("flops", flops));
  uint64_t id = next_correlation_id();
  sink().launched(id, LaunchKind::kKernel, 0);
  sink().returned(id);
  stack.pop(session_state());
  return id;
}

void run_kernel(uint64_t id) {
  KernelRecord record;
  record.correlation_id = id;
  record.name = "raw";
  sink().complete({&record, 1});
}

} // namespace

TEST(texts_are_those_of_upstream) {
  CHECK_EQ(metric_text(int64_t{-7}), "-7");
  CHECK_EQ(metric_text(1.0), "1.000000");
  CHECK_EQ(metric_text(std::vector<int64_t>{1, 2}), "[1,2]");
  CHECK_EQ(metric_text(std::vector<double>{1.5, 2}), "[1.5,2]");
  CHECK_EQ(metric_text(std::vector<double>{}), "[]");
}

TEST(texts_stand_for_the_very_number) {
  CHECK_EQ(metric_text(1e-9), "1e-09");
  CHECK_EQ(metric_text(1.0 / 3), "0.3333333333333333");
  CHECK_EQ(metric_text(1e22), "10000000000000000000000.000000");
  CHECK_EQ(metric_text(std::vector<double>{1000001.5, 1e22, -0.1}), "[1000001.5,1e+22,-0.1]");
  CHECK_EQ(metric_text(std::vector<int64_t>{INT64_MAX}), "[9223372036854775807]");
}

TEST(values_are_of_the_instance_in_which_they_were_added) {
  TimelineSession session;
  for (int64_t turn : {1, 2, 3}) {
    TimedScope scope("s");
    if (turn != 2)
      add(metric("turn", turn));
  }
  const KeptEvents::Phase &phase = session.events(); // all ends come after all values
  CHECK_EQ(described(phase), "scope s; scope s; scope s");
  CHECK_EQ(values_of(phase, 0), "turn=1 ");
  CHECK_EQ(values_of(phase, 1), "");
  CHECK_EQ(values_of(phase, 2), "turn=3 ");
}

TEST(values_of_one_name_are_summed_and_properties_replaced) {
  TimelineSession session;
  {
    TimedScope scope("s");
    add(metric("bytes", int64_t{3}));
    add(metric("bytes", int64_t{4}));
    add(metric("flops", 1.5, Aggregation::kExclusive));
    add(metric("flops", 1.0, Aggregation::kExclusive));
    add(metric("size", int64_t{5}, Aggregation::kProperty));
    add(metric("size", int64_t{6}, Aggregation::kProperty));
    add(metric("list", std::vector<int64_t>{1, 2}));
    add(metric("list", std::vector<int64_t>{3, 4}));
  }
  CHECK_EQ(values_of(session.events(), 0), "bytes=7 flops (exc)=2.500000 size (pty)=6 list=[4,6] ");
}

TEST(values_go_to_the_scope_that_was_named_and_not_to_the_one_inside) {
  TimelineSession session;
  {
    TimedScope outer("outer");
    Capture at = capture_current();
    TimedScope inner("inner");
    add(metric("m", int64_t{1}), at);
  }
  const KeptEvents::Phase &phase = session.events();
  CHECK_EQ(values_of(phase, 0), "");
  CHECK_EQ(values_of(phase, 1), "m=1 ");
}

TEST(values_in_a_state_are_those_of_the_scope_around_it) {
  TimelineSession session;
  {
    TimedScope scope("s");
    this_thread().stack.enter_state("loading", session_state());
    add(metric("m", int64_t{1}));
    this_thread().stack.exit_state(session_state());
  }
  CHECK_EQ(values_of(session.events(), 0), "m=1 ");
}

TEST(values_where_no_scope_of_the_thread_is_open_are_of_no_event) {
  TimelineSession session;
  add(metric("m", int64_t{1}));
  {
    TimedScope scope("s");
    Capture at = capture_current();
    std::thread([&] { add(metric("m", int64_t{2}), at); }).join();
  }
  CHECK_EQ(values_of(session.events(), 0), "");
}

TEST(values_of_threads_do_not_mix) {
  TimelineSession session;
  auto work = [](int64_t value) {
    TimedScope scope("s");
    add(metric("m", value));
  };
  std::thread first(work, 1), second(work, 2);
  first.join();
  second.join();
  const KeptEvents::Phase &phase = session.events();
  CHECK(values_of(phase, 0) + values_of(phase, 1) == "m=1 m=2 " ||
        values_of(phase, 0) + values_of(phase, 1) == "m=2 m=1 ");
}

TEST(metadata_of_a_launch_are_the_values_of_its_kernel) {
  TimelineSession session;
  uint64_t first = named_launch("mm", 10), without = named_launch("mm", 0),
           last = named_launch("mm", 30);
  for (uint64_t id : {first, without, last})
    run_kernel(id);
  const KeptEvents::Phase &phase = session.events();
  CHECK_EQ(described(phase), "launch mm; kernel mm; launch mm; kernel mm; launch mm; kernel mm");
  CHECK_EQ(values_of(phase, 0), "");
  CHECK_EQ(values_of(phase, 1), "flops=10 ");
  CHECK_EQ(values_of(phase, 3), "");
  CHECK_EQ(values_of(phase, 5), "flops=30 ");
}

TEST(values_of_a_scope_are_not_those_of_what_is_launched_in_it) {
  TimelineSession session;
  {
    TimedScope scope("s");
    add(metric("m", int64_t{1}));
    uint64_t id = next_correlation_id();
    sink().launched(id, LaunchKind::kKernel, 0);
    sink().returned(id);
    run_kernel(id);
    OpenRange range = enter_range("interpreted", FrameKind::kKernel);
    exit_range(range, RangeKind::kKernel, {TickClock::now_ns(), 1, 1}, -1);
  }
  const KeptEvents::Phase &phase = session.events();
  CHECK_EQ(described(phase), "launch s/raw; kernel s/raw; interpreted s/interpreted; scope s");
  CHECK_EQ(values_of(phase, 1) + values_of(phase, 2), "");
  CHECK_EQ(values_of(phase, 3), "m=1 ");
}

TEST(metadata_of_an_interpreted_launch_are_the_values_of_its_kernel) {
  TimelineSession session;
  ShadowStack &stack = this_thread().stack;
  stack.push(hashed("pretty"), FrameKind::kKernel, session_state());
  add(metric("flops", int64_t{8}));
  OpenRange range = enter_range("raw", FrameKind::kKernel);
  exit_range(range, RangeKind::kKernel, {TickClock::now_ns(), 1, 1}, -1);
  stack.pop(session_state());
  const KeptEvents::Phase &phase = session.events();
  CHECK_EQ(described(phase), "interpreted pretty");
  CHECK_EQ(values_of(phase, 0), "flops=8 ");
}

TEST(an_open_scope_shows_its_values_too) {
  TimelineSession session;
  TimedScope scope("s");
  add(metric("m", 0.5));
  CHECK_EQ(values_of(session.end(), 0), "m=0.500000 ");
}

TEST(values_of_epochs_that_are_gone_are_forgotten) {
  InstanceValues values;
  values.add({1, 5, 100, 1}, 10, metric("m", int64_t{1}));
  values.add({1, 5, 101, 2}, 20, metric("m", int64_t{2}));
  values.add({2, 5, 102, 1}, 30, metric("m", int64_t{3}));
  values.forget_if([](EpochId epoch) { return epoch == 1; });
  CHECK_EQ(values.size(), 1);
  CHECK_EQ(values.take(1, 5, 0, 100)->values[0].second, "2");
  CHECK(!values.take(1, 5, 0, 100));
}
