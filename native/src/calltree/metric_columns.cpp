#include "calltree/metric_columns.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <sstream>
#include <tuple>
#include <type_traits>
#include <utility>

#include "support/error.h"
#include "support/fork_locks.h"

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

namespace {

struct MetricNames {
  std::mutex mutex;
  std::deque<MetricName> all; ///< their addresses stay
  std::map<std::pair<std::string_view, Aggregation>, uint32_t> numbers;
};

MetricNames &names() {
  static MetricNames *table = [] { // outlives threads of the target
    auto *fresh = new MetricNames;
    guard_across_fork(fresh->mutex, LockRank::kMetricNames);
    return fresh;
  }();
  return *table;
}

std::string shown_name(std::string_view text, Aggregation aggregation) {
  std::string name(text);
  if (aggregation != Aggregation::kInclusive)
    name += std::string(" (") + aggregation_text(aggregation) + ")";
  return name;
}

} // namespace

const MetricName &MetricName::of(std::string_view text, Aggregation aggregation) {
  MetricNames &table = names();
  std::lock_guard lock(table.mutex);
  auto known = table.numbers.find({text, aggregation});
  if (known != table.numbers.end())
    return table.all[known->second];
  MetricName &fresh = table.all.emplace_back();
  try {
    fresh.text = text;
    fresh.aggregation = aggregation;
    fresh.number = static_cast<uint32_t>(table.all.size() - 1);
    fresh.shown = Name(shown_name(text, aggregation));
    table.numbers.emplace(std::pair(std::string_view(fresh.text), aggregation), fresh.number);
  } catch (...) {
    table.all.pop_back();
    throw;
  }
  return fresh;
}

const MetricName &MetricName::numbered(uint32_t number) {
  MetricNames &table = names();
  std::lock_guard lock(table.mutex);
  return table.all[number];
}

size_t MetricName::count() {
  MetricNames &table = names();
  std::lock_guard lock(table.mutex);
  return table.all.size();
}

namespace {

constexpr uint64_t kCountBits = 16;
constexpr uint64_t kCountMask = (uint64_t{1} << kCountBits) - 1;

} // namespace

Sketch::Sketch(double bucket_ratio) : gamma_(bucket_ratio), counted_bytes_(sizeof(Sketch)) {
  static const double kLnGamma = std::log(kSketchGamma);
  ln_gamma_ = gamma_ == kSketchGamma ? kLnGamma : std::log(gamma_);
}

size_t Sketch::add(double ln, uint64_t count) {
  auto index = static_cast<int64_t>(std::ceil(ln / ln_gamma_));
  // Each collapse sends index i to ceil(i / 2); shifts round towards smaller numbers.
  index = (index + (int64_t{1} << collapses_) - 1) >> collapses_;
  size_t pages = pages_.size(), carries = carries_.size();
  add_to(static_cast<int32_t>(index), count);
  if (pages_.size() == pages && carries_.size() == carries)
    return 0;
  return settle();
}

size_t Sketch::settle() {
  size_t before = counted_bytes_;
  while (pages_.size() * sizeof(Page) + carries_.size() * sizeof(Carry) > kMaxSketchBytes)
    merge_pairs();
  counted_bytes_ = bytes();
  return counted_bytes_ - before;
}

void Sketch::add_to(int32_t index, uint64_t count) {
  constexpr int32_t kInPage = (1 << kPageBits) - 1;
  uint16_t &bucket = page(index >> kPageBits).counts[index & kInPage];
  uint64_t sum = bucket + count;
  bucket = static_cast<uint16_t>(sum & kCountMask);
  if (sum > kCountMask)
    carry(index, sum >> kCountBits);
}

Sketch::Page &Sketch::page(int32_t number) {
  size_t place = places_[static_cast<uint8_t>(number)];
  if (place < pages_.size() && pages_[place].number == number)
    return pages_[place];
  return find_page(number);
}

Sketch::Page &Sketch::find_page(int32_t number) {
  auto found = std::lower_bound(pages_.begin(), pages_.end(), number,
                                [](const Page &each, int32_t to) { return each.number < to; });
  auto place = found - pages_.begin();
  if (found == pages_.end() || found->number != number) {
    if (pages_.size() == pages_.capacity()) // doubled, but no further past the limit than needed
      pages_.reserve(std::max(pages_.size() + 1, std::min(2 * pages_.size() + 2, kMaxPages)));
    found = pages_.insert(pages_.begin() + place, Page{});
    found->number = number;
  }
  places_[static_cast<uint8_t>(number)] = static_cast<uint8_t>(place);
  return *found;
}

void Sketch::carry(int32_t index, uint64_t times) {
  auto found = std::lower_bound(carries_.begin(), carries_.end(), index,
                                [](const Carry &each, int32_t to) { return each.index < to; });
  if (found == carries_.end() || found->index != index)
    found = carries_.insert(found, Carry{index, 0});
  found->times += static_cast<uint32_t>(std::min<uint64_t>(times, UINT32_MAX - found->times));
}

void Sketch::merge_pairs() {
  std::vector<Bucket> finer = buckets();
  pages_.clear();
  carries_.clear();
  ++collapses_;
  for (const Bucket &bucket : finer)
    add_to((bucket.index + 1) >> 1, bucket.count);
}

std::vector<Sketch::Bucket> Sketch::buckets() const {
  std::vector<Bucket> found;
  found.reserve(pages_.size() * 4);
  auto carry = carries_.begin();
  for (const Page &page : pages_)
    for (int32_t slot = 0; slot < 1 << kPageBits; ++slot) {
      Bucket bucket{page.number * (1 << kPageBits) + slot, page.counts[slot]};
      if (carry != carries_.end() && carry->index == bucket.index)
        bucket.count += uint64_t{(carry++)->times} << kCountBits;
      if (bucket.count != 0)
        found.push_back(bucket);
    }
  return found;
}

size_t Sketch::bytes() const {
  return sizeof(Sketch) + pages_.capacity() * sizeof(Page) + carries_.capacity() * sizeof(Carry);
}

Distribution &Distribution::operator=(const Distribution &other) {
  n = other.n;
  zero_count = other.zero_count;
  sum = other.sum;
  min = other.min;
  max = other.max;
  sum_ln = other.sum_ln;
  sum_ln2 = other.sum_ln2;
  value_error = other.value_error;
  samples = other.samples;
  sketch = other.sketch ? std::make_unique<Sketch>(*other.sketch) : nullptr;
  moments_only = other.moments_only;
  return *this;
}

size_t Distribution::bytes() const {
  return samples.capacity() * sizeof(float) + (sketch ? sketch->bytes() : 0);
}

std::ptrdiff_t Distribution::add(double value, bool keep_samples) {
  min = n == 0 ? value : std::min(min, value);
  max = n == 0 ? value : std::max(max, value);
  ++n;
  sum += value;
  const double ln = value > 0 ? std::log(value) : 0;
  if (value > 0) {
    sum_ln += ln;
    sum_ln2 += ln * ln;
  } else {
    ++zero_count;
  }
  if (moments_only)
    return 0;
  if (sketch && keep_samples)
    return value > 0 ? static_cast<std::ptrdiff_t>(sketch->add(ln)) : 0;
  auto before = static_cast<std::ptrdiff_t>(bytes());
  if (!keep_samples) {
    forget_samples();
  } else if (samples.size() < kMaxRawSamples) {
    samples.push_back(static_cast<float>(value));
  } else {
    make_sketch(kSketchGamma);
    if (value > 0)
      sketch->add(ln);
  }
  return static_cast<std::ptrdiff_t>(bytes()) - before;
}

void Distribution::forget_samples() {
  moments_only = true;
  std::vector<float>().swap(samples); // assigning an empty one would keep the memory
  sketch.reset();
}

void Distribution::make_sketch(double gamma) {
  sketch = std::make_unique<Sketch>(gamma);
  for (float sample : samples)
    if (sample > 0)
      sketch->add(std::log(static_cast<double>(sample)));
  std::vector<float>().swap(samples);
}

std::ptrdiff_t Distribution::add(const CountedSamples &counted, bool keep_samples) {
  if (counted.n == 0)
    return 0;
  min = n == 0 ? counted.min : std::min(min, counted.min);
  max = n == 0 ? counted.max : std::max(max, counted.max);
  n += counted.n;
  sum += counted.sum;
  value_error = std::max(value_error, counted.value_error);
  auto before = static_cast<std::ptrdiff_t>(bytes());
  if (!moments_only && !keep_samples)
    forget_samples();
  if (!sketch && !moments_only)
    make_sketch(counted.gamma);
  for (const CountedSamples::Bin &bin : counted.bins) {
    if (bin.value <= 0) {
      zero_count += bin.count;
      continue;
    }
    const double ln = std::log(bin.value);
    sum_ln += ln * static_cast<double>(bin.count);
    sum_ln2 += ln * ln * static_cast<double>(bin.count);
    if (sketch)
      sketch->add(ln, bin.count);
  }
  return static_cast<std::ptrdiff_t>(bytes()) - before;
}

namespace {

constexpr size_t kDistributionBudgetBytes = 64u << 20;

template <typename T> void grow(std::vector<T> &values, NodeIndex node) {
  if (values.size() <= node)
    values.resize(node + 1);
}

/// "m [exc]", "m [exc] (ns)": the unit stays last.
std::string qualified(std::string_view name, Aggregation aggregation) {
  std::string unit = metric_unit(std::string(name));
  std::string mark = std::string(" [") + aggregation_text(aggregation) + "]";
  if (unit.empty())
    return std::string(name) + mark;
  size_t open = name.rfind(" (");
  return std::string(name.substr(0, open)) + mark + std::string(name.substr(open));
}

void set_value(MetricColumn &column, NodeIndex node, const MetricValue &value) {
  using Held = MetricColumn::Held;
  const auto *integer = std::get_if<int64_t>(&value);
  const auto *number = std::get_if<double>(&value);
  if (integer)
    grow(column.ints, node);
  else if (number)
    grow(column.doubles, node);
  else
    column.others.insert_or_assign(node, value);
  grow(column.held, node); // what may fail is done
  if (integer)
    column.ints[node] = *integer;
  else if (number)
    column.doubles[node] = *number;
  Held now = integer ? Held::kInt : number ? Held::kDouble : Held::kOther;
  if (column.held[node] == Held::kOther && now != Held::kOther)
    column.others.erase(node);
  column.held[node] = now;
}

void add_int_to(MetricColumn &column, NodeIndex node, int64_t value) {
  if (column.holds(node) == MetricColumn::Held::kInt &&
      column.aggregation != Aggregation::kProperty) [[likely]] {
    if (add_exactly(column.ints[node], value))
      return;
  }
  if (!column.has(node)) {
    set_value(column, node, value);
    return;
  }
  MetricValue sum = column.value(node);
  add_value(sum, column.aggregation, value, column.name);
  set_value(column, node, sum);
}

} // namespace

std::string metric_unit(const std::string &name) {
  size_t open = name.rfind(" (");
  if (open == std::string::npos || name.back() != ')')
    return "";
  return name.substr(open + 2, name.size() - open - 3);
}

MetricValue MetricColumn::value(NodeIndex node) const {
  switch (holds(node)) {
  case Held::kInt:
    return ints[node];
  case Held::kDouble:
    return doubles[node];
  default:
    return others.at(node);
  }
}

MetricType MetricColumn::type() const {
  MetricType type = MetricType::kInt;
  if (std::find(held.begin(), held.end(), Held::kDouble) != held.end())
    type = MetricType::kDouble;
  for (const auto &[node, value] : others)
    type = widened(type, type_of(value));
  return type;
}

bool MetricColumn::is_empty() const {
  return std::all_of(held.begin(), held.end(), [](Held each) { return each == Held::kNone; });
}

MetricColumn *MetricColumns::find_shown(std::string_view name) {
  auto found = std::find_if(columns_.begin(), columns_.end(),
                            [&](const MetricColumn &each) { return each.name == name; });
  return found == columns_.end() ? nullptr : &*found;
}

std::string MetricColumns::free_name(std::string_view name, Aggregation aggregation) const {
  std::string free(name);
  auto is_taken = [&] {
    return std::any_of(columns_.begin(), columns_.end(),
                       [&](const MetricColumn &each) { return each.name == free; });
  };
  while (is_taken())
    free = qualified(free, aggregation);
  return free;
}

size_t MetricColumns::position(const MetricName &metric) {
  auto found = positions_.find(metric.number);
  if (found != positions_.end())
    return found->second;
  MetricColumn fresh;
  fresh.name = free_name(metric.text, metric.aggregation);
  fresh.aggregation = metric.aggregation;
  columns_.reserve(columns_.size() + 1); // what may fail comes before the position is known
  found = positions_.emplace(metric.number, columns_.size()).first;
  columns_.push_back(std::move(fresh));
  return found->second;
}

void MetricColumns::add(NodeIndex node, const MetricName &metric, const MetricValue &value) {
  MetricColumn &target = columns_[position(metric)];
  if (const auto *integer = std::get_if<int64_t>(&value)) {
    add_int_to(target, node, *integer);
    return;
  }
  if (!target.has(node)) {
    set_value(target, node, value);
    return;
  }
  MetricValue sum = target.value(node);
  add_value(sum, metric.aggregation, value, metric.text);
  set_value(target, node, sum);
}

size_t MetricColumns::builtin(const char *name, Aggregation aggregation) {
  for (const auto &[known, position] : builtins_)
    if (known == name)
      return position;
  // If a metric of the program has taken the name, it gives it back.
  MetricColumn *shown = find_shown(name);
  if (shown && shown->aggregation != aggregation)
    shown->name = free_name(qualified(name, shown->aggregation), shown->aggregation);
  size_t found = position(MetricName::of(name, aggregation));
  columns_[found].name = name;
  builtins_.emplace_back(name, found);
  return found;
}

void MetricColumns::add_int(size_t position, NodeIndex node, int64_t value) {
  add_int_to(columns_[position], node, value);
}

void MetricColumns::set_own(const char *name, Aggregation aggregation, NodeIndex node,
                            int64_t value) {
  MetricColumn &target = columns_[builtin(name, aggregation)];
  target.is_own = true;
  set_value(target, node, value);
}

void MetricColumns::add_own(const char *name, Aggregation aggregation, NodeIndex node,
                            int64_t value) {
  MetricColumn &target = columns_[builtin(name, aggregation)];
  target.is_own = true;
  add_int_to(target, node, value);
}

void MetricColumns::add_sample(size_t position, NodeIndex node, double value) {
  add_sample(distribution(position, node), value);
}

Distribution &MetricColumns::distribution(size_t position, NodeIndex node) {
  auto [found, is_new] = columns_[position].distributions.try_emplace(node);
  if (is_new)
    distribution_bytes_ += sizeof(Distribution);
  return found->second;
}

template <typename Samples>
void MetricColumns::add_to(Distribution &distribution, const Samples &samples) {
  bool was_cold = distribution.moments_only;
  // Unsigned: where a distribution shrinks, the sum wraps to what is right.
  distribution_bytes_ += static_cast<size_t>(
      distribution.add(samples, distribution_bytes_ < kDistributionBudgetBytes));
  if (!was_cold && distribution.moments_only)
    ++cold_;
}

void MetricColumns::add_sample(Distribution &distribution, double value) {
  add_to(distribution, value);
}

void MetricColumns::add_samples(Distribution &distribution, const CountedSamples &counted) {
  add_to(distribution, counted);
}

} // namespace proton
