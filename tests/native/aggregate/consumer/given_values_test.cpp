// Values that the program gives, and what becomes of them in a drain.
#include <thread>

#include "aggregate/consumer/given_values.h"
#include "aggregate/consumer/timeline_session.h"
#include "check.h"
#include "support/error.h"

using namespace proton;

namespace {

UserMetric metric(const char *name, MetricValue value,
                  Aggregation aggregation = Aggregation::kInclusive) {
  return {MetricName::of(name, aggregation), std::move(value)};
}

void give(const UserMetric &given) { give_values(capture_current(), {&given, 1}, true); }

MetricValue at_root(TimelineSession &session, const char *name) {
  Aggregator::Held held;
  held.drain();
  for (const MetricColumn &column : session.tree.tree(0).metrics().columns())
    if (column.name == name)
      return column.value(kRootNode);
  return std::string("none");
}

/// Runs on another thread while this one has the aggregator.
template <typename Body> void while_taken(Body body) {
  Aggregator::Held held;
  std::thread(body).join(); // would wait for ever
}

} // namespace

TEST(values_are_given_while_another_thread_has_the_aggregator) {
  TimelineSession session;
  while_taken([] { give(metric("m", int64_t{2})); });
  give(metric("m", int64_t{3}));
  CHECK(at_root(session, "m") == MetricValue(int64_t{5}));
}

TEST(values_of_each_kind_come_as_they_were_given) {
  TimelineSession session;
  give(metric("int", INT64_MIN));
  give(metric("double", -0.5));
  give(metric("list", std::vector<double>{1, 2}));
  give(metric("text", std::string("some"), Aggregation::kProperty));
  CHECK(at_root(session, "int") == MetricValue(INT64_MIN));
  CHECK(at_root(session, "double") == MetricValue(-0.5));
  CHECK(at_root(session, "list") == MetricValue(std::vector<double>{1, 2}));
  CHECK(at_root(session, "text") == MetricValue(std::string("some")));
}

TEST(the_newest_property_of_a_thread_wins) {
  TimelineSession session;
  for (int64_t value : {1, 2})
    give(metric("p", value, Aggregation::kProperty));
  CHECK(at_root(session, "p") == MetricValue(int64_t{2}));
}

TEST(values_are_shown_by_the_event_of_their_scope) {
  TimelineSession session;
  while_taken([] {
    TimedScope scope("s");
    give(metric("m", int64_t{2}));
  });
  CHECK_EQ(values_of(session.events(), 0), "m=2 ");
}

TEST(giving_a_list_that_does_not_fit_fails) {
  TimelineSession session;
  give(metric("lists", std::vector<double>{1}));
  while_taken([] {
    CHECK_THROWS(give(metric("lists", std::vector<double>{1, 2})), Error);
    CHECK_THROWS(give(metric("lists", int64_t{1})), Error);
    TimedScope elsewhere("s");
    give(metric("lists", int64_t{1}));
  });
  CHECK(at_root(session, "lists") == MetricValue(std::vector<double>{1}));
}

TEST(a_value_that_does_not_fit_is_counted) {
  TimelineSession session;
  give(metric("m", int64_t{1}));
  session.advance_phase();
  session.phase = 0; // what was given is not known then
  session.listen();
  give(metric("m", std::vector<double>{1}));
  CHECK(at_root(session, "m") == MetricValue(int64_t{1}));
  CHECK_EQ(session.lost("metric that does not fit earlier ones of its call path"), 1);
}

TEST(values_of_a_launch_stand_where_it_stood) {
  TimelineSession session;
  uint64_t id = next_correlation_id();
  {
    TimedScope scope("s");
    Aggregator::instance().launched(id);
  }
  UserMetric both[] = {metric("m", int64_t{4}), metric("n", 0.5)};
  std::thread([&] { give_launch_values(id, both); }).join();
  Aggregator::Held held;
  held.drain();
  const CallPathTree &tree = session.tree.tree(0);
  CHECK(tree.metrics().columns()[0].value(1) == MetricValue(int64_t{4}));
  CHECK(tree.metrics().columns()[1].value(1) == MetricValue(0.5));
  CHECK_EQ(tree.nodes()[1].name.text(), "s");
}

TEST(a_launch_without_a_value_after_all_is_taken_back) {
  TimelineSession session;
  uint64_t id = next_correlation_id();
  Aggregator::instance().launched(id);
  give_launch_values(id, {});
  Aggregator::Held held;
  held.drain();
  CHECK_EQ(held.epochs().counts_of(session.tree).launches, 0);
}

TEST(slices_consume_a_part_and_no_value_comes_after_its_scope) {
  TimelineSession session;
  constexpr int kScopes = 3000;
  for (int64_t i = 0; i < kScopes; ++i) {
    TimedScope scope("s");
    give(metric("m", i));
  }
  {
    Aggregator::Held held;
    CHECK(!held.drain_slice());
    uint64_t first = held.epochs().counts_of(session.tree).metrics;
    CHECK(first > 0 && first < kScopes);
    while (!held.drain_slice()) {
    }
  }
  const KeptEvents::Phase &phase = session.events();
  CHECK_EQ(phase.events.size(), kScopes);
  for (int i = 0; i < kScopes; i += 611)
    CHECK_EQ(values_of(phase, static_cast<size_t>(i)), "m=" + std::to_string(i) + " ");
}

TEST(a_thread_that_is_faster_than_the_slices_hides_no_other) {
  TimelineSession session;
  auto work = [] {
    for (int i = 0; i < 5000; ++i)
      TimedScope scope("s");
  };
  std::thread other([&] {
    for (int64_t i = 0; i < 10; ++i)
      give(metric("m", i));
  });
  other.join();
  for (int slice = 0; slice < 4; ++slice) {
    work();
    Aggregator::Held held;
    held.drain_slice();
  }
  Aggregator::Held held;
  CHECK_EQ(held.epochs().counts_of(session.tree).metrics, 10);
}

TEST(a_drain_between_slices_consumes_all) {
  TimelineSession session;
  for (int i = 0; i < 5000; ++i)
    TimedScope scope("s");
  Aggregator::Held held;
  CHECK(!held.drain_slice());
  for (int i = 0; i < 1000; ++i)
    TimedScope scope("s");
  held.drain();
  CHECK_EQ(held.epochs().counts_of(session.tree).ranges, 6000);
}

TEST(only_where_types_are_checked_is_a_number_of_another_type_refused) {
  TimelineSession session;
  give(metric("a", 1.0));
  give(metric("a", int64_t{1}));
  CHECK(at_root(session, "a") == MetricValue(2.0));
  check_value_types(true);
  give(metric("b", 1.5));
  std::string error;
  try {
    give(metric("b", int64_t{1}));
  } catch (const Error &refused) {
    error = refused.what();
  }
  check_value_types(false);
  CHECK(error.starts_with(
      "Metric value type mismatch for valueId 0 (b): current=double, new=int64_t"));
  CHECK(at_root(session, "b") == MetricValue(1.5));
}
