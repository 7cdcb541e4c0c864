// The file of record, `.proton`: one MessagePack map of little-endian columns.
//
//   {"schema": "proton_bench.profile", "version": [1, 0], "partial", "provenance", "devices",
//    "strings", "rows", "parents", "frames", "kinds", "device", "variant", "variants", "metrics",
//    "distributions", "dropped"}
//
// Rows stand in pre-order. A column is {"dtype", "codec": "raw"|"zlib", "size", "bytes"}; "size"
// counts the bytes before compression.
#include "writer/tree/proton_writer.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "record/code_table.h"
#include "support/deflate.h"
#include "support/error.h"
#include "writer/bytes/msgpack_bytes.h"
#include "writer/bytes/utf8_text.h"

namespace proton {
namespace {

static_assert(std::endian::native == std::endian::little,
              "columns are written as they stand in memory, which must be little-endian");

// Columns up to this size stay raw: compressing them costs more than it saves.
constexpr size_t kMinCompressedBytes = 4096;

// The memory of an array as bytes.
template <typename Number> std::string_view bytes_of(const std::vector<Number> &numbers) {
  return {reinterpret_cast<const char *>(numbers.data()), numbers.size() * sizeof(Number)};
}

// Appends the keys "codec", "size" and "bytes" with their values: three entries of a map.
void pack_payload(MsgpackBytes &out, std::string_view bytes) {
  std::string compressed;
  bool is_compressed = bytes.size() > kMinCompressedBytes && deflate(bytes, compressed) &&
                       compressed.size() < bytes.size();
  out.entry("codec", is_compressed ? "zlib" : "raw");
  out.entry("size", bytes.size());
  out.text("bytes");
  out.binary(is_compressed ? std::string_view(compressed) : bytes);
}

// Appends a column map. `dtype` is numpy's: "<i4", "<i8", "<f8", "|u1".
void pack_column(MsgpackBytes &out, std::string_view dtype, std::string_view bytes) {
  out.map(4);
  out.entry("dtype", dtype);
  pack_payload(out, bytes);
}

constexpr const char *kSchema = "proton_bench.profile";
constexpr int64_t kMajorVersion = 1;
constexpr int64_t kMinorVersion = 0;

const char *dtype_text(MetricType type) {
  switch (type) {
  case MetricType::kInt:
    return "<i8";
  case MetricType::kDouble:
    return "<f8";
  case MetricType::kIntVector:
    return "vec<i8";
  case MetricType::kDoubleVector:
    return "vec<f8";
  case MetricType::kText:
    return "str";
  }
  return "<i8";
}

/// One row per node, parents before children and subtrees contiguous; row 0 is the root.
struct PreorderRows {
  /// Throws Error(kOutput) past 2^31 - 1 nodes.
  explicit PreorderRows(const CallPathTree &tree);

  std::vector<NodeIndex> order;      ///< node of each row
  std::vector<int32_t> row_of;       ///< row of each node
  std::vector<int32_t> parents;      ///< row of the parent, -1 for the root
  std::vector<int32_t> frames;       ///< position in `strings`
  std::vector<uint8_t> kinds;        ///< FrameKind
  std::vector<int32_t> device;       ///< position in `devices_used`, or -1
  std::vector<int32_t> devices_used; ///< positions in the DeviceTable, in order of appearance
  std::vector<int32_t> variant;      ///< position in the variants, or -1
  std::vector<std::string> strings;  ///< valid UTF-8

  /// Position of the text in `strings`; a new text is added.
  int32_t string_index(const Name &name);

  /// Called by CallPathTree::walk.
  void enter(NodeIndex node, uint32_t depth);
  void leave(NodeIndex, uint32_t) {}

private:
  int32_t device_index(int32_t position);

  const std::vector<TreeNode> &nodes_;
  std::unordered_map<const void *, int32_t> string_indexes_;
  std::vector<Name> names_; ///< keeps their keys in use
};

PreorderRows::PreorderRows(const CallPathTree &tree) : nodes_(tree.nodes()) {
  if (nodes_.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    throw Error(ErrorCode::kOutput, "cannot encode the profile: it has " +
                                        std::to_string(nodes_.size()) +
                                        " call paths and the format ends at 2147483647; record "
                                        "fewer call paths or clear phases more often");
  }
  order.reserve(nodes_.size());
  row_of.resize(nodes_.size(), kNone);
  tree.walk(*this);
}

int32_t PreorderRows::string_index(const Name &name) {
  auto [found, is_new] =
      string_indexes_.try_emplace(name.key(), static_cast<int32_t>(strings.size()));
  if (is_new) {
    names_.push_back(name);
    strings.push_back(valid_utf8(name.text()));
  }
  return found->second;
}

void PreorderRows::enter(NodeIndex index, uint32_t) {
  const TreeNode &node = nodes_[index];
  row_of[index] = static_cast<int32_t>(order.size());
  order.push_back(index);
  parents.push_back(node.parent == kNoNode ? kNone : row_of[node.parent]);
  frames.push_back(string_index(node.name));
  kinds.push_back(static_cast<uint8_t>(node.kind));
  device.push_back(device_index(node.device));
  variant.push_back(node.variant);
}

int32_t PreorderRows::device_index(int32_t position) {
  if (position < 0)
    return position;
  auto found = std::find(devices_used.begin(), devices_used.end(), position);
  auto index = static_cast<int32_t>(found - devices_used.begin());
  if (found == devices_used.end())
    devices_used.push_back(position);
  return index;
}

// Writes only the buckets from the first to the last used one: there are some hundred at most.
void pack_buckets(MsgpackBytes &out, const std::vector<uint32_t> &buckets) {
  auto first = std::find_if(buckets.begin(), buckets.end(), [](uint32_t n) { return n != 0; });
  out.entry("latency_first_bucket", static_cast<uint64_t>(first - buckets.begin()));
  out.text("latency_buckets");
  out.array(static_cast<size_t>(buckets.end() - first));
  for (; first != buckets.end(); ++first)
    out.count(*first);
}

void pack_use(MsgpackBytes &out, const DeviceUse &use, size_t device, const TreeNode &node) {
  const std::pair<const char *, int64_t> numbers[] = {
      {"device", static_cast<int64_t>(device)},
      {"busy_ns", use.busy_ns},
      {"idle_ns", use.idle.all_ns},
      {"long_idle_ns", use.idle.long_ns},
      {"waiting_ns", use.waiting_ns},
      {"uncertain_ns", use.uncertain_ns},
      {"launches", static_cast<int64_t>(use.latency.count)},
      {"latency_clamped", static_cast<int64_t>(use.latency.clamped)},
      {"latency_sum_ns", use.latency.sum_ns},
      {"latency_min_ns", use.latency.min_ns},
      {"latency_max_ns", use.latency.max_ns},
  };
  out.map(std::size(numbers) + 3);
  out.text("scope");
  if (node.kind == FrameKind::kRoot)
    out.nil();
  else
    out.text(valid_utf8(node.name.text()));
  for (const auto &[name, value] : numbers) {
    out.entry(name, value);
  }
  pack_buckets(out, use.latency.buckets);
}

/// One map per device for the whole profile (scope nil), and one per top-level scope.
void pack_device_use(MsgpackBytes &out, const CallPathTree &tree,
                     const std::vector<int32_t> &devices_used) {
  std::vector<std::pair<const DeviceUse *, size_t>> known;
  for (const DeviceUse &use : tree.device_use()) {
    auto found = std::find(devices_used.begin(), devices_used.end(), use.device);
    if (found != devices_used.end())
      known.emplace_back(&use, static_cast<size_t>(found - devices_used.begin()));
  }
  out.text("device_use");
  out.array(known.size());
  for (const auto &[use, device] : known)
    pack_use(out, *use, device, tree.nodes()[use->node]);
}

/// The distributions of one metric, turned into arrays.
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

void pack_arrays(MsgpackBytes &out, const std::string &metric, const Arrays &arrays) {
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
  out.entry("metric", valid_utf8(metric));
  for (const auto &[key, bytes] : entries) {
    out.text(key);
    out.binary(bytes);
  }
  out.text("gamma");
  out.real(arrays.gamma);
  out.text("value_error");
  out.real(arrays.value_error);
}

// A MessagePack list with one map per metric that has distributions, which is inflated on demand;
// every array in it is plain little-endian bytes. Empty when no metric has any.
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
    pack_arrays(out, column->name, collect(*column, row_of));
  return out.take();
}

class ProtonFile {
public:
  ProtonFile(const CallPathTree &tree, bool has_distributions)
      : tree_(tree), has_distributions_(has_distributions), rows_(tree) {
    index_texts();
  }
  std::string encode(const std::vector<Device> &devices, const FileFacts &facts);

private:
  void provenance(const FileFacts &facts);
  void devices(const std::vector<Device> &devices);
  void structure();
  void optional_column(const std::vector<int32_t> &values);
  void variants();
  void instructions(const InstructionMix &mix);
  void extent(const uint32_t (&axes)[3]);
  void metrics();
  void metric(const MetricColumn &column, const std::vector<bool> &valid);
  template <typename Get> void scalars(const MetricColumn &column, std::string_view dtype, Get get);
  template <typename Get>
  void vectors(const MetricColumn &column, std::string_view dtype, std::vector<int64_t> &offsets,
               Get get);
  void index_texts();
  void validity(const std::vector<bool> &valid);
  void distributions();
  void dropped(const std::map<std::string, uint64_t> &counts);

  const CallPathTree &tree_;
  const bool has_distributions_;
  PreorderRows rows_;
  std::map<std::pair<const MetricColumn *, NodeIndex>, int32_t> texts_; ///< by position
  MsgpackBytes out_;
};

struct MapHead {
  size_t entries = 0;
  size_t bytes = 1;
};

// The rest is not checked: our own encoder in Python wrote the map.
MapHead head_of(std::string_view map) {
  auto byte = [&](size_t at) { return static_cast<uint8_t>(map[at]); };
  uint8_t lead = byte(0);
  if ((lead & 0xF0) == 0x80)
    return {lead & size_t{0x0F}, 1};
  size_t width = lead == 0xDE ? 2 : 4;
  if ((lead != 0xDE && lead != 0xDF) || map.size() <= width)
    throw Error(ErrorCode::kFormat,
                "the session's provenance is not a MessagePack map (first byte " +
                    std::to_string(lead) + "); set it with one encoded map of names to values");
  MapHead head{0, 1 + width};
  for (size_t at = 1; at <= width; ++at)
    head.entries = head.entries << 8 | byte(at);
  return head;
}

void ProtonFile::provenance(const FileFacts &facts) {
  const std::string_view encoded = facts.provenance;
  const MapHead head = encoded.empty() ? MapHead{0, 0} : head_of(encoded);
  out_.text("provenance");
  out_.map(head.entries + (facts.so_far ? 2u : 0u));
  out_.encoded(encoded.substr(head.bytes));
  if (facts.so_far) {
    out_.entry("end_time_ns", facts.so_far->unix_ns);
    out_.entry("steps_begun", facts.so_far->steps);
  }
}

void ProtonFile::devices(const std::vector<Device> &devices) {
  out_.text("devices");
  out_.array(rows_.devices_used.size());
  for (int32_t position : rows_.devices_used) {
    auto index = static_cast<size_t>(position);
    const Device device = index < devices.size() ? devices[index] : Device{};
    out_.map(7);
    out_.entry("kind", valid_utf8(device.kind));
    out_.entry("index", device.index);
    out_.entry("arch", valid_utf8(device.arch));
    out_.entry("num_sms", device.num_sms);
    out_.entry("clock_rate_khz", device.clock_rate_khz);
    out_.entry("memory_clock_rate_khz", device.memory_clock_rate_khz);
    out_.entry("bus_width_bits", device.bus_width_bits);
  }
}

// nil if no row has a value.
void ProtonFile::optional_column(const std::vector<int32_t> &values) {
  bool is_used = std::any_of(values.begin(), values.end(), [](int32_t v) { return v != kNone; });
  if (is_used)
    pack_column(out_, "<i4", bytes_of(values));
  else
    out_.nil();
}

void ProtonFile::structure() {
  out_.text("strings");
  out_.array(rows_.strings.size());
  for (const std::string &text : rows_.strings)
    out_.text(text);
  out_.entry("rows", rows_.order.size());
  out_.text("parents");
  pack_column(out_, "<i4", bytes_of(rows_.parents));
  out_.text("frames");
  pack_column(out_, "<i4", bytes_of(rows_.frames));
  out_.text("kinds");
  pack_column(out_, "|u1", bytes_of(rows_.kinds));
  out_.text("device");
  optional_column(rows_.device);
  out_.text("variant");
  optional_column(rows_.variant);
}

void ProtonFile::extent(const uint32_t (&axes)[3]) {
  out_.array(3);
  for (uint32_t axis : axes)
    out_.count(axis);
}

void ProtonFile::variants() {
  out_.text("variants");
  out_.array(tree_.variants().size());
  for (const Variant &variant : tree_.variants()) {
    // Text, because a 64-bit hash does not fit the numbers of JSON readers.
    char hash[17];
    std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(variant.code_hash));
    const InstructionMix *mix = find_instructions(variant.code_hash);
    out_.map(mix ? 10 : 9);
    out_.entry("code_hash", variant.code_hash == 0 ? "" : hash);
    out_.text("grid");
    extent(variant.grid);
    out_.text("block");
    extent(variant.block);
    out_.entry("shared_bytes", variant.shared_bytes);
    out_.entry("signature", valid_utf8(variant.signature));
    out_.entry("registers", variant.registers);
    out_.entry("local_bytes", variant.local_bytes);
    out_.entry("raw_name", valid_utf8(variant.raw_name));
    out_.entry("config", valid_utf8(variant.config));
    if (mix)
      instructions(*mix);
  }
}

void ProtonFile::instructions(const InstructionMix &mix) {
  out_.text("instructions");
  out_.map(mix.size() - static_cast<size_t>(std::count(mix.begin(), mix.end(), 0u)));
  for (size_t i = 0; i < mix.size(); ++i) {
    if (mix[i] == 0)
      continue;
    out_.entry(kInstructionNames[i], mix[i]);
  }
}

template <typename Get>
void ProtonFile::scalars(const MetricColumn &column, std::string_view dtype, Get get) {
  std::vector<decltype(get(kRootNode))> values(rows_.order.size());
  for (size_t row = 0; row < values.size(); ++row)
    if (column.has(rows_.order[row]))
      values[row] = get(rows_.order[row]);
  pack_column(out_, dtype, bytes_of(values));
}

template <typename Get>
void ProtonFile::vectors(const MetricColumn &column, std::string_view dtype,
                         std::vector<int64_t> &offsets, Get get) {
  decltype(get(kRootNode)) values;
  offsets.assign(1, 0);
  for (NodeIndex node : rows_.order) {
    if (column.has(node)) {
      auto added = get(node);
      values.insert(values.end(), added.begin(), added.end());
    }
    offsets.push_back(static_cast<int64_t>(values.size()));
  }
  pack_column(out_, dtype, bytes_of(values));
}

// The table of strings is written first, so texts of metrics are added to it before.
void ProtonFile::index_texts() {
  for (const MetricColumn &column : tree_.metrics().columns()) {
    if (column.type() != MetricType::kText)
      continue;
    for (NodeIndex node : rows_.order)
      if (column.has(node))
        texts_.try_emplace({&column, node},
                           rows_.string_index(Name(metric_text(column.value(node)))));
  }
}

// nil if every row has a value; else one bit per row, the lowest bit of a byte first.
void ProtonFile::validity(const std::vector<bool> &valid) {
  out_.text("valid");
  if (std::find(valid.begin(), valid.end(), false) == valid.end()) {
    out_.nil();
    return;
  }
  std::vector<uint8_t> bits((valid.size() + 7) / 8);
  for (size_t row = 0; row < valid.size(); ++row)
    if (valid[row])
      bits[row / 8] = static_cast<uint8_t>(bits[row / 8] | (1u << (row % 8)));
  pack_column(out_, "|u1", bytes_of(bits));
}

void ProtonFile::metric(const MetricColumn &column, const std::vector<bool> &valid) {
  std::vector<int64_t> offsets;
  const MetricType type = column.type();
  out_.map(7);
  out_.entry("name", valid_utf8(column.name));
  out_.entry("unit", valid_utf8(metric_unit(column.name)));
  out_.entry("aggregation", aggregation_text(column.aggregation));
  out_.entry("dtype", dtype_text(type));
  out_.text("values");
  switch (type) {
  case MetricType::kInt:
    scalars(column, "<i8", [&](NodeIndex node) { return column.ints[node]; });
    break;
  case MetricType::kDouble:
    scalars(column, "<f8", [&](NodeIndex node) { return as_double(column.value(node)); });
    break;
  case MetricType::kIntVector:
    vectors(column, "<i8", offsets, [&](NodeIndex node) { return as_ints(column.value(node)); });
    break;
  case MetricType::kDoubleVector:
    vectors(column, "<f8", offsets, [&](NodeIndex node) { return as_doubles(column.value(node)); });
    break;
  case MetricType::kText:
    scalars(column, "<i4", [&](NodeIndex node) { return texts_.at({&column, node}); });
    break;
  }
  validity(valid);
  out_.text("offsets");
  if (offsets.empty())
    out_.nil();
  else
    pack_column(out_, "<i8", bytes_of(offsets));
}

// Columns without a value (a built-in that never came) are left out.
void ProtonFile::metrics() {
  std::vector<std::pair<const MetricColumn *, std::vector<bool>>> present;
  for (const MetricColumn &column : tree_.metrics().columns()) {
    std::vector<bool> valid(rows_.order.size());
    for (size_t row = 0; row < valid.size(); ++row)
      valid[row] = column.has(rows_.order[row]);
    if (std::find(valid.begin(), valid.end(), true) != valid.end())
      present.emplace_back(&column, std::move(valid));
  }
  out_.text("metrics");
  out_.array(present.size());
  for (const auto &[column, valid] : present)
    metric(*column, valid);
}

void ProtonFile::distributions() {
  out_.text("distributions");
  std::string section;
  if (has_distributions_)
    section = pack_distributions(tree_.metrics(), rows_.row_of);
  if (section.empty()) {
    out_.nil();
    return;
  }
  out_.map(3);
  pack_payload(out_, section);
}

void ProtonFile::dropped(const std::map<std::string, uint64_t> &counts) {
  out_.text("dropped");
  out_.map(counts.size());
  for (const auto &[reason, count] : counts) {
    out_.text(valid_utf8(reason));
    out_.count(count);
  }
}

std::string ProtonFile::encode(const std::vector<Device> &device_list, const FileFacts &facts) {
  out_.map(16 + (tree_.device_use().empty() ? 0u : 1u) + (facts.steady.empty() ? 0u : 1u));
  out_.entry("schema", kSchema);
  out_.text("version");
  out_.array(2);
  out_.integer(kMajorVersion);
  out_.integer(kMinorVersion);
  out_.text("partial");
  out_.boolean(facts.partial);
  provenance(facts);
  devices(device_list);
  structure();
  variants();
  metrics();
  distributions();
  dropped(facts.dropped);
  if (!tree_.device_use().empty())
    pack_device_use(out_, tree_, rows_.devices_used);
  if (!facts.steady.empty()) {
    out_.text("steady");
    out_.binary(facts.steady);
  }
  return out_.take();
}

} // namespace

FileFormat parse_file_format(std::string_view text) {
  if (text == "proton")
    return FileFormat::kProton;
  if (text == "tree")
    return FileFormat::kTree;
  throw Error(ErrorCode::kUsage,
              "Unknown output format: " + valid_utf8(text) + "; choose proton or tree");
}

// Exceptions of the standard library (no memory) become the one error type that callers know.
std::string encode_profile(const CallPathTree &tree, const std::vector<Device> &devices,
                           const FileFacts &facts, FileFormat format) {
  try {
    return ProtonFile(tree, format == FileFormat::kProton).encode(devices, facts);
  } catch (const Error &) {
    throw;
  } catch (const std::exception &error) {
    throw Error(ErrorCode::kOutput,
                "cannot encode a profile of " + std::to_string(tree.nodes().size()) +
                    " call paths: " + error.what() + "; free memory or clear phases more often");
  }
}

} // namespace proton
