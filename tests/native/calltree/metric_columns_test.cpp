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
  CHECK((metrics.columns()[1].value(0) == MetricValue(std::vector<double>{3, 4})));
}

TEST(vectors_add_by_element) {
  MetricColumns metrics;
  metrics.add(0, "v", Aggregation::kInclusive, std::vector<int64_t>{1, 2});
  metrics.add(0, "v", Aggregation::kInclusive, std::vector<int64_t>{10, 20});
  CHECK((metrics.columns()[0].value(0) == MetricValue(std::vector<int64_t>{11, 22})));
}

TEST(only_nodes_with_a_value_have_one) {
  MetricColumns metrics;
  metrics.add(2, "a", Aggregation::kInclusive, int64_t{0});
  metrics.add(2, "v", Aggregation::kInclusive, std::vector<int64_t>{});
  const MetricColumn &scalar = metrics.columns()[0], &vector = metrics.columns()[1];
  CHECK(scalar.has(2) && !scalar.has(1) && !scalar.has(3));
  CHECK(vector.has(2) && !vector.has(1));
}

TEST(numbers_that_meet_are_of_the_wider_type) {
  MetricColumns metrics;
  metrics.add(0, "a", Aggregation::kInclusive, int64_t{1});
  metrics.add(0, "a", Aggregation::kInclusive, 1.5);
  metrics.add(0, "a", Aggregation::kInclusive, int64_t{2});
  metrics.add(1, "a", Aggregation::kInclusive, int64_t{7});
  const MetricColumn &column = metrics.columns()[0];
  CHECK((column.value(0) == MetricValue(4.5)));
  CHECK((column.value(1) == MetricValue(int64_t{7})));
  CHECK(column.type() == MetricType::kDouble);
}

TEST(each_node_has_a_type_of_its_own) {
  MetricColumns metrics;
  metrics.add(0, "a", Aggregation::kExclusive, int64_t{1});
  metrics.add(1, "a", Aggregation::kExclusive, std::vector<double>{1, 2});
  CHECK(metrics.columns()[0].type() == MetricType::kDoubleVector);
  metrics.add(2, "a", Aggregation::kExclusive, std::string("fp16"));
  CHECK(metrics.columns()[0].type() == MetricType::kText);
  CHECK((metrics.columns()[0].value(2) == MetricValue(std::string("fp16"))));
}

TEST(the_newest_text_is_kept) {
  MetricColumns metrics;
  for (const char *text : {"fp32", "fp16"})
    metrics.add(0, "a", Aggregation::kExclusive, std::string(text));
  CHECK((metrics.columns()[0].value(0) == MetricValue(std::string("fp16"))));
  metrics.add(0, "a", Aggregation::kExclusive, int64_t{8});
  CHECK((metrics.columns()[0].value(0) == MetricValue(int64_t{8})));
  CHECK(metrics.columns()[0].others.empty());
}

TEST(a_number_that_meets_a_vector_is_refused_in_upstreams_words) {
  MetricColumns metrics;
  metrics.add(0, "a", Aggregation::kInclusive, std::vector<double>{1});
  std::string message = refusal([&] { metrics.add(0, "a", Aggregation::kInclusive, int64_t{1}); });
  CHECK(contains(
      message,
      "Metric value type mismatch for valueId 0 (a): current=vector<double>, new=int64_t"));
}

TEST(another_vector_length_is_refused_in_upstreams_words) {
  MetricColumns metrics;
  metrics.add(0, "v", Aggregation::kInclusive, std::vector<double>{1});
  std::string message =
      refusal([&] { metrics.add(0, "v", Aggregation::kInclusive, std::vector<double>{1, 2}); });
  CHECK(contains(message, "Vector metric size mismatch for valueId 0 (v)"));
}

TEST(a_name_has_a_column_for_each_aggregation) {
  MetricColumns metrics;
  metrics.add(0, "a (ns)", Aggregation::kInclusive, int64_t{1});
  metrics.add(0, "a (ns)", Aggregation::kProperty, int64_t{2});
  metrics.add(0, "a (ns)", Aggregation::kInclusive, int64_t{3});
  CHECK_EQ(metrics.columns().size(), 2);
  CHECK_EQ(metrics.columns()[0].name, "a (ns)");
  CHECK_EQ(metrics.columns()[0].ints[0], 4);
  CHECK_EQ(metrics.columns()[1].name, "a [pty] (ns)");
  CHECK_EQ(metrics.columns()[1].ints[0], 2);
}

TEST(a_builtin_metric_keeps_its_name_and_aggregation) {
  MetricColumns metrics;
  metrics.add(0, "wall (ns)", Aggregation::kInclusive, int64_t{1});
  metrics.add(0, "wall (ns)", Aggregation::kExclusive, 0.5);
  size_t position = metrics.builtin("wall (ns)", Aggregation::kExclusive);
  metrics.add_int(position, 1, 7);
  const MetricColumn &wall = metrics.columns()[position];
  CHECK_EQ(wall.name, "wall (ns)");
  CHECK(wall.aggregation == Aggregation::kExclusive);
  CHECK_EQ(wall.ints[1], 7);
  CHECK_EQ(metrics.columns()[0].name, "wall [inc] (ns)");
}

TEST(a_refused_value_changes_nothing) {
  MetricColumns metrics;
  metrics.add(0, "a", Aggregation::kInclusive, std::vector<int64_t>{1, 2});
  CHECK_THROWS(metrics.add(0, "a", Aggregation::kInclusive, std::vector<int64_t>{1}), Error);
  CHECK((metrics.columns()[0].value(0) == MetricValue(std::vector<int64_t>{1, 2})));
  CHECK_EQ(metrics.columns().size(), 1);
}

TEST(sums_beyond_64_bits_are_doubles) {
  MetricColumns metrics;
  size_t position = metrics.builtin("time (ns)", Aggregation::kInclusive);
  metrics.add_int(position, 0, INT64_MAX);
  metrics.add_int(position, 0, 1);
  CHECK((metrics.columns()[position].value(0) == MetricValue(9223372036854775808.0)));
  metrics.add(1, "v", Aggregation::kInclusive, std::vector<int64_t>{1, INT64_MIN});
  metrics.add(1, "v", Aggregation::kInclusive, std::vector<int64_t>{1, -1});
  CHECK((metrics.columns()[1].value(1) ==
         MetricValue(std::vector<double>{2, -9223372036854775809.0})));
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
