#include "writer/tree/proton_writer.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "record/instruction_mix.h"
#include "support/error.h"
#include "writer/bytes/packed_column.h"
#include "writer/bytes/utf8_text.h"
#include "writer/tree/device_use_section.h"
#include "writer/tree/distribution_section.h"
#include "writer/tree/preorder_rows.h"

namespace proton {
namespace {

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

class ProtonFile {
public:
  explicit ProtonFile(const CallPathTree &tree) : tree_(tree), rows_(tree) { index_texts(); }
  std::string encode(const std::vector<Device> &devices, const FileFacts &facts);

private:
  void provenance(const std::string &encoded);
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
  PreorderRows rows_;
  std::map<std::pair<const MetricColumn *, NodeIndex>, int32_t> texts_; ///< by position
  MsgpackBytes out_;
};

// Only the first byte is checked: our own encoder in Python wrote the map.
void ProtonFile::provenance(const std::string &encoded) {
  out_.text("provenance");
  if (encoded.empty()) {
    out_.map(0);
    return;
  }
  auto lead = static_cast<uint8_t>(encoded[0]);
  if ((lead & 0xF0) != 0x80 && lead != 0xDE && lead != 0xDF) {
    throw Error(ErrorCode::kFormat,
                "the session's provenance is not a MessagePack map (first byte " +
                    std::to_string(lead) + "); set it with one encoded map of names to values");
  }
  out_.encoded(encoded);
}

void ProtonFile::devices(const std::vector<Device> &devices) {
  out_.text("devices");
  out_.array(rows_.devices_used.size());
  for (int32_t position : rows_.devices_used) {
    auto index = static_cast<size_t>(position);
    const Device device = index < devices.size() ? devices[index] : Device{};
    out_.map(7);
    out_.text("kind");
    out_.text(valid_utf8(device.kind));
    out_.text("index");
    out_.integer(device.index);
    out_.text("arch");
    out_.text(valid_utf8(device.arch));
    out_.text("num_sms");
    out_.integer(device.num_sms);
    out_.text("clock_rate_khz");
    out_.integer(device.clock_rate_khz);
    out_.text("memory_clock_rate_khz");
    out_.integer(device.memory_clock_rate_khz);
    out_.text("bus_width_bits");
    out_.integer(device.bus_width_bits);
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
  out_.text("rows");
  out_.count(rows_.order.size());
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
    out_.text("code_hash");
    out_.text(variant.code_hash == 0 ? "" : hash);
    out_.text("grid");
    extent(variant.grid);
    out_.text("block");
    extent(variant.block);
    out_.text("shared_bytes");
    out_.integer(variant.shared_bytes);
    out_.text("signature");
    out_.text(valid_utf8(variant.signature));
    out_.text("registers");
    out_.integer(variant.registers);
    out_.text("local_bytes");
    out_.integer(variant.local_bytes);
    out_.text("raw_name");
    out_.text(valid_utf8(variant.raw_name));
    out_.text("config");
    out_.text(valid_utf8(variant.config));
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
    out_.text(kInstructionNames[i]);
    out_.count(mix[i]);
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
  out_.text("name");
  out_.text(valid_utf8(column.name));
  out_.text("unit");
  out_.text(valid_utf8(metric_unit(column.name)));
  out_.text("aggregation");
  out_.text(aggregation_text(column.aggregation));
  out_.text("dtype");
  out_.text(dtype_text(type));
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
  std::string section = pack_distributions(tree_.metrics(), rows_.row_of);
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
  out_.map(tree_.device_use().empty() ? 16 : 17);
  out_.text("schema");
  out_.text(kSchema);
  out_.text("version");
  out_.array(2);
  out_.integer(kMajorVersion);
  out_.integer(kMinorVersion);
  out_.text("partial");
  out_.boolean(facts.partial);
  provenance(facts.provenance);
  devices(device_list);
  structure();
  variants();
  metrics();
  distributions();
  dropped(facts.dropped);
  if (!tree_.device_use().empty())
    pack_device_use(out_, tree_, rows_.devices_used);
  return out_.take();
}

} // namespace

std::string write_proton(const CallPathTree &tree, const std::vector<Device> &devices,
                         const FileFacts &facts) {
  return ProtonFile(tree).encode(devices, facts);
}

} // namespace proton
