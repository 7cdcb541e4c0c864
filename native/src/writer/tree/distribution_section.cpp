#include "writer/tree/distribution_section.h"

#include <algorithm>
#include <utility>

#include "writer/bytes/msgpack_bytes.h"
#include "writer/bytes/packed_column.h"
#include "writer/bytes/utf8_text.h"

namespace proton {
namespace {

// The distributions of one metric, turned into arrays.
struct Arrays {
  std::vector<int32_t> rows;
  std::vector<int64_t> n, zero_count;
  std::vector<double> sum, min, max, sum_ln, sum_ln2;
  std::vector<int32_t> sample_offsets{0};
  std::vector<float> samples;
  std::vector<int32_t> bucket_offsets{0};
  std::vector<int32_t> bucket_steps; ///< from the index before, which compresses better
  std::vector<int64_t> bucket_count;
  std::vector<uint8_t> collapses;
  int32_t last_index = 0;
  double gamma = kSketchGamma; ///< the sketches of one metric have one
  double value_error = 0;      ///< the largest

  void add(int32_t row, const Distribution &distribution);
  void add_sketch(const Sketch &sketch);
};

void Arrays::add_sketch(const Sketch &sketch) {
  gamma = sketch.gamma();
  for (const Sketch::Bucket &bucket : sketch.buckets()) {
    bucket_steps.push_back(bucket.index - last_index);
    last_index = bucket.index;
    bucket_count.push_back(static_cast<int64_t>(bucket.count));
  }
}

void Arrays::add(int32_t row, const Distribution &distribution) {
  rows.push_back(row);
  n.push_back(static_cast<int64_t>(distribution.n));
  zero_count.push_back(static_cast<int64_t>(distribution.zero_count));
  sum.push_back(distribution.sum);
  min.push_back(distribution.min);
  max.push_back(distribution.max);
  sum_ln.push_back(distribution.sum_ln);
  sum_ln2.push_back(distribution.sum_ln2);
  if (distribution.sketch)
    add_sketch(*distribution.sketch);
  samples.insert(samples.end(), distribution.samples.begin(), distribution.samples.end());
  sample_offsets.push_back(static_cast<int32_t>(samples.size()));
  bucket_offsets.push_back(static_cast<int32_t>(bucket_steps.size()));
  collapses.push_back(distribution.sketch ? distribution.sketch->collapses() : 0);
  value_error = std::max(value_error, distribution.value_error);
}

Arrays collect(const MetricColumn &column, const std::vector<int32_t> &row_of) {
  std::vector<std::pair<int32_t, const Distribution *>> by_row;
  by_row.reserve(column.distributions.size());
  for (const auto &[node, distribution] : column.distributions)
    by_row.emplace_back(row_of[node], &distribution);
  std::sort(by_row.begin(), by_row.end());
  Arrays arrays;
  for (const auto &[row, distribution] : by_row)
    arrays.add(row, *distribution);
  return arrays;
}

void pack(MsgpackBytes &out, const std::string &metric, const Arrays &arrays) {
  const std::pair<const char *, std::string_view> entries[] = {
      {"rows", bytes_of(arrays.rows)},
      {"n", bytes_of(arrays.n)},
      {"zero_count", bytes_of(arrays.zero_count)},
      {"sum", bytes_of(arrays.sum)},
      {"min", bytes_of(arrays.min)},
      {"max", bytes_of(arrays.max)},
      {"sum_ln", bytes_of(arrays.sum_ln)},
      {"sum_ln2", bytes_of(arrays.sum_ln2)},
      {"sample_offsets", bytes_of(arrays.sample_offsets)},
      {"samples", bytes_of(arrays.samples)},
      {"bucket_offsets", bytes_of(arrays.bucket_offsets)},
      {"bucket_steps", bytes_of(arrays.bucket_steps)},
      {"bucket_count", bytes_of(arrays.bucket_count)},
      {"collapses", bytes_of(arrays.collapses)},
  };
  out.map(std::size(entries) + 3);
  out.text("metric");
  out.text(valid_utf8(metric));
  for (const auto &[key, bytes] : entries) {
    out.text(key);
    out.binary(bytes);
  }
  out.text("gamma");
  out.real(arrays.gamma);
  out.text("value_error");
  out.real(arrays.value_error);
}

} // namespace

std::string pack_distributions(const MetricColumns &metrics, const std::vector<int32_t> &row_of) {
  std::vector<const MetricColumn *> sampled;
  for (const MetricColumn &column : metrics.columns())
    if (!column.distributions.empty())
      sampled.push_back(&column);
  if (sampled.empty())
    return "";
  MsgpackBytes out;
  out.array(sampled.size());
  for (const MetricColumn *column : sampled)
    pack(out, column->name, collect(*column, row_of));
  return out.take();
}

} // namespace proton
