#include "calltree/metric_value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <tuple>
#include <type_traits>
#include <utility>

#include "support/error.h"

namespace proton {
namespace {

const char *type_text(const MetricValue &value) {
  constexpr const char *kTexts[] = {"int64_t", "double", "vector<int64_t>", "vector<double>",
                                    "string"};
  return kTexts[value.index()];
}

bool is_vector(MetricType type) {
  return type == MetricType::kIntVector || type == MetricType::kDoubleVector;
}

bool is_vector(const MetricValue &value) { return is_vector(type_of(value)); }

size_t length(const MetricValue &value) {
  if (const auto *ints = std::get_if<std::vector<int64_t>>(&value))
    return ints->size();
  return std::get<std::vector<double>>(value).size();
}

void refuse(const MetricValue &sum, const MetricValue &value, const std::string &name) {
  if (is_vector(sum) != is_vector(value))
    throw Error(ErrorCode::kMetric, "Metric value type mismatch for valueId 0 (" + name +
                                        "): current=" + type_text(sum) +
                                        ", new=" + type_text(value) +
                                        "; give the metric numbers or lists on a call path");
  if (is_vector(sum) && length(sum) != length(value))
    throw Error(ErrorCode::kMetric, "Vector metric size mismatch for valueId 0 (" + name +
                                        "): current=" + std::to_string(length(sum)) +
                                        ", new=" + std::to_string(length(value)) +
                                        "; give the metric one length on each call path");
}

/// Adds integers if every sum fits; otherwise returns false and changes nothing.
bool add_ints(std::vector<int64_t> &sums, const std::vector<int64_t> &values) {
  std::vector<int64_t> added = sums;
  for (size_t i = 0; i < added.size(); ++i)
    if (!add_exactly(added[i], values[i]))
      return false;
  sums = std::move(added);
  return true;
}

/// Returns the text if it reads back as this number, else as many digits as that takes.
std::string exact_text(double value, std::string text) {
  if (std::strtod(text.c_str(), nullptr) == value || !std::isfinite(value))
    return text;
  std::array<char, 32> digits{};
  auto [end, error] = std::to_chars(digits.begin(), digits.end(), value);
  return {digits.data(), end};
}

std::string element_text(int64_t value) { return std::to_string(value); }

std::string element_text(double value) {
  std::ostringstream text;
  text << value;
  return exact_text(value, text.str());
}

} // namespace

MetricType widened(MetricType left, MetricType right) {
  MetricType wider = std::max(left, right);
  bool is_mixed = wider == MetricType::kIntVector && std::min(left, right) == MetricType::kDouble;
  return is_mixed ? MetricType::kDoubleVector : wider;
}

const char *aggregation_text(Aggregation aggregation) {
  switch (aggregation) {
  case Aggregation::kInclusive:
    return "inc";
  case Aggregation::kExclusive:
    return "exc";
  case Aggregation::kProperty:
    return "pty";
  }
  return "inc";
}

void add_value(MetricValue &sum, Aggregation aggregation, const MetricValue &value,
               const std::string &name) {
  MetricType wider = widened(type_of(sum), type_of(value));
  if (aggregation == Aggregation::kProperty || wider == MetricType::kText) {
    sum = value;
    return;
  }
  refuse(sum, value, name);
  if (wider == MetricType::kInt && add_exactly(std::get<int64_t>(sum), std::get<int64_t>(value)))
    return;
  if (wider == MetricType::kIntVector &&
      add_ints(std::get<std::vector<int64_t>>(sum), std::get<std::vector<int64_t>>(value)))
    return;
  if (!is_vector(wider)) {
    sum = as_double(sum) + as_double(value);
    return;
  }
  std::vector<double> sums = as_doubles(sum), values = as_doubles(value);
  for (size_t i = 0; i < sums.size(); ++i)
    sums[i] += values[i];
  sum = std::move(sums);
}

void merge_value(MetricValue &total, Aggregation aggregation, MetricValue value) {
  auto pad = [](auto left, auto right) {
    left.resize(std::max(left.size(), right.size()));
    right.resize(left.size());
    return std::pair(std::move(left), std::move(right));
  };
  MetricType wider = widened(type_of(total), type_of(value));
  if (wider == MetricType::kIntVector)
    std::tie(total, value) = pad(as_ints(total), as_ints(value));
  else if (wider == MetricType::kDoubleVector)
    std::tie(total, value) = pad(as_doubles(total), as_doubles(value));
  add_value(total, aggregation, value, "");
}

double as_double(const MetricValue &value) {
  if (const auto *number = std::get_if<int64_t>(&value))
    return static_cast<double>(*number);
  return std::get<double>(value);
}

std::vector<int64_t> as_ints(const MetricValue &value) {
  if (const auto *number = std::get_if<int64_t>(&value))
    return {*number};
  return std::get<std::vector<int64_t>>(value);
}

std::vector<double> as_doubles(const MetricValue &value) {
  if (const auto *numbers = std::get_if<std::vector<double>>(&value))
    return *numbers;
  if (const auto *number = std::get_if<double>(&value))
    return {*number};
  std::vector<int64_t> ints = as_ints(value);
  return {ints.begin(), ints.end()};
}

std::string metric_text(const MetricValue &value) {
  return std::visit(
      [](const auto &each) -> std::string {
        using Value = std::decay_t<decltype(each)>;
        if constexpr (std::is_same_v<Value, std::string>) {
          return each;
        } else if constexpr (std::is_floating_point_v<Value>) {
          return exact_text(each, std::to_string(each));
        } else if constexpr (std::is_integral_v<Value>) {
          return std::to_string(each);
        } else {
          std::string text = "[";
          for (size_t i = 0; i < each.size(); ++i)
            text += (i == 0 ? "" : ",") + element_text(each[i]);
          return text + "]";
        }
      },
      value);
}

} // namespace proton
