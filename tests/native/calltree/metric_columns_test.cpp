#include "calltree/metric_columns.h"

#include "check.h"
#include "failing_memory.h"
#include "support/error.h"

using namespace proton;

namespace {

template <typename Add> std::string refusal(Add add) {
  try {
    add();
  } catch (const Error &error) {
    CHECK(error.code() == ErrorCode::kMetric);
    return error.what();
  }
  return "";
}

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST(a_metric_that_found_no_memory_is_added_whole_the_next_time) {
  MetricColumns metrics;
  const std::string name = "a metric with a name that is not short (ns)";
  int64_t failures =
      failing_memory::exhaust([&] { metrics.add(2, name, Aggregation::kInclusive, int64_t{5}); },
                              [&] { CHECK(metrics.columns().size() <= 1); });
  CHECK(failures > 0);
  CHECK_EQ(metrics.columns().size(), 1);
  CHECK_EQ(metrics.columns()[0].name, name);
  CHECK_EQ(metrics.columns()[0].ints[2], 5);
}

TEST(inclusive_and_exclusive_values_add_up) {
  MetricColumns metrics;
  metrics.add(3, "a", Aggregation::kInclusive, int64_t{2});
  metrics.add(3, "a", Aggregation::kInclusive, int64_t{5});
  metrics.add(3, "b", Aggregation::kExclusive, 0.5);
  metrics.add(3, "b", Aggregation::kExclusive, 0.25);
  CHECK_EQ(metrics.columns()[0].ints[3], 7);
  CHECK_EQ(metrics.columns()[1].doubles[3], 0.75);
}

TEST(properties_are_overwritten) {
  MetricColumns metrics;
  metrics.add(0, "p", Aggregation::kProperty, int64_t{2});
  metrics.add(0, "p", Aggregation::kProperty, int64_t{5});
  metrics.add(0, "v", Aggregation::kProperty, std::vector<double>{1, 2});
  metrics.add(0, "v", Aggregation::kProperty, std::vector<double>{3, 4});
  CHECK_EQ(metrics.columns()[0].ints[0], 5);
  CHECK_EQ(metrics.columns()[1].double_vectors.at(0)[1], 4.0);
}

TEST(vectors_add_by_element) {
  MetricColumns metrics;
  metrics.add(0, "v", Aggregation::kInclusive, std::vector<int64_t>{1, 2});
  metrics.add(0, "v", Aggregation::kInclusive, std::vector<int64_t>{10, 20});
  CHECK((metrics.columns()[0].int_vectors.at(0) == std::vector<int64_t>{11, 22}));
}

TEST(only_nodes_with_a_value_have_one) {
  MetricColumns metrics;
  metrics.add(2, "a", Aggregation::kInclusive, int64_t{0});
  metrics.add(2, "v", Aggregation::kInclusive, std::vector<int64_t>{});
  const MetricColumn &scalar = metrics.columns()[0], &vector = metrics.columns()[1];
  CHECK(scalar.has(2) && !scalar.has(1) && !scalar.has(3));
  CHECK(vector.has(2) && !vector.has(1));
}

TEST(another_type_is_refused_in_upstreams_words) {
  MetricColumns metrics;
  metrics.add(0, "a", Aggregation::kInclusive, 1.0);
  std::string message = refusal([&] { metrics.add(0, "a", Aggregation::kInclusive, int64_t{1}); });
  CHECK(contains(message,
                 "Metric value type mismatch for valueId 0 (a): current=double, new=int64_t"));
}

TEST(another_vector_length_is_refused_in_upstreams_words) {
  MetricColumns metrics;
  metrics.add(0, "v", Aggregation::kInclusive, std::vector<double>{1});
  std::string message =
      refusal([&] { metrics.add(0, "v", Aggregation::kInclusive, std::vector<double>{1, 2}); });
  CHECK(contains(message, "Vector metric size mismatch for valueId 0 (v)"));
}

TEST(another_aggregation_is_refused) {
  MetricColumns metrics;
  metrics.add(0, "a", Aggregation::kInclusive, int64_t{1});
  std::string message = refusal([&] { metrics.add(0, "a", Aggregation::kProperty, int64_t{1}); });
  CHECK(contains(message, "(inc)") && contains(message, "(pty)"));
}

TEST(a_refused_value_changes_nothing) {
  MetricColumns metrics;
  metrics.add(0, "a", Aggregation::kInclusive, int64_t{1});
  CHECK_THROWS(metrics.add(0, "a", Aggregation::kInclusive, 2.0), Error);
  CHECK_EQ(metrics.columns()[0].ints[0], 1);
  CHECK_EQ(metrics.columns().size(), 1);
}

TEST(integer_sums_wrap_instead_of_being_undefined) {
  MetricColumns metrics;
  metrics.add(0, "a", Aggregation::kInclusive, INT64_MAX);
  metrics.add(0, "a", Aggregation::kInclusive, int64_t{1});
  CHECK_EQ(metrics.columns()[0].ints[0], INT64_MIN);
}

TEST(a_builtin_column_is_made_once) {
  MetricColumns metrics;
  size_t position = metrics.builtin("time (ns)", Aggregation::kInclusive);
  CHECK_EQ(metrics.builtin("time (ns)", Aggregation::kInclusive), position);
  metrics.add_int(position, 1, 40);
  metrics.add_int(position, 1, 2);
  CHECK_EQ(metrics.columns()[position].ints[1], 42);
}

TEST(samples_go_to_the_distribution_of_their_node) {
  MetricColumns metrics;
  size_t position = metrics.builtin("time (ns)", Aggregation::kInclusive);
  metrics.add_sample(position, 4, 10);
  metrics.add_sample(position, 4, 30);
  const auto &distributions = metrics.columns()[position].distributions;
  CHECK_EQ(distributions.size(), 1);
  CHECK_EQ(distributions.at(4).sum, 40.0);
}

TEST(units_are_read_from_the_name) {
  CHECK_EQ(metric_unit("time (ns)"), "ns");
  CHECK_EQ(metric_unit("count"), "");
  CHECK_EQ(metric_unit("odd (x) y"), "");
  CHECK_EQ(metric_unit(""), "");
}

TEST(aggregations_have_their_short_names) {
  CHECK_EQ(std::string(aggregation_text(Aggregation::kInclusive)), "inc");
  CHECK_EQ(std::string(aggregation_text(Aggregation::kExclusive)), "exc");
  CHECK_EQ(std::string(aggregation_text(Aggregation::kProperty)), "pty");
}
