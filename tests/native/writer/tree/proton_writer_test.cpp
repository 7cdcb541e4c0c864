#include "writer/tree/proton_writer.h"

#include <algorithm>
#include <cstring>

#include "check.h"
#include "record/code_table.h"
#include "support/error.h"
#include "writer/bytes/msgpack_reader.h"
#include "writer/tree/sample_tree.h"

using namespace proton;

namespace {

msgpack::Value encode(const CallPathTree &tree, const FileFacts &facts = {},
                      const std::vector<Device> &devices = sample::one_gpu()) {
  return msgpack::parse(encode_profile(tree, devices, facts));
}

// The array of a raw column, its declared size checked.
template <typename Number> std::vector<Number> array(const msgpack::Value &column) {
  CHECK_EQ(column["codec"].text, "raw");
  CHECK_EQ(column["size"].integer, column["bytes"].text.size());
  const std::string &bytes = column["bytes"].text;
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

template <typename Number> std::vector<Number> plain(const msgpack::Value &binary) {
  std::vector<Number> numbers(binary.text.size() / sizeof(Number));
  std::memcpy(numbers.data(), binary.text.data(), binary.text.size());
  return numbers;
}

bool is_nil(const msgpack::Value &value) { return value.type == msgpack::Value::Type::kNil; }

} // namespace

TEST(an_empty_tree_has_every_key_and_one_row) {
  CallPathTree tree;
  msgpack::Value file = encode(tree, {}, {});
  CHECK((file.keys == std::vector<std::string>{"schema", "version", "partial", "provenance",
                                               "devices", "strings", "rows", "parents", "frames",
                                               "kinds", "device", "variant", "variants", "metrics",
                                               "distributions", "dropped"}));
  CHECK_EQ(file["schema"].text, "proton_bench.profile");
  CHECK_EQ(file["version"][0].integer, 1);
  CHECK_EQ(file["rows"].integer, 1);
  CHECK((array<int32_t>(file["parents"]) == std::vector<int32_t>{-1}));
  CHECK_EQ(file["strings"][0].text, "ROOT");
  CHECK(is_nil(file["device"]) && is_nil(file["variant"]) && is_nil(file["distributions"]));
  CHECK_EQ(file["metrics"].items.size(), 0);
}

TEST(rows_stand_in_preorder_whatever_the_order_of_creation) {
  CallPathTree tree;
  NodeIndex a = sample::scope(tree, kRootNode, "a");
  NodeIndex b = sample::scope(tree, kRootNode, "b");
  sample::scope(tree, b, "b1");
  sample::scope(tree, a, "a1");
  msgpack::Value file = encode(tree);
  CHECK((array<int32_t>(file["parents"]) == std::vector<int32_t>{-1, 0, 1, 0, 3}));
  std::string names;
  for (int32_t frame : array<int32_t>(file["frames"]))
    names += file["strings"][static_cast<size_t>(frame)].text + " ";
  CHECK_EQ(names, "ROOT a a1 b b1 ");
}

TEST(variants_devices_and_kinds_stand_on_their_rows) {
  CallPathTree tree;
  sample::kernel(tree, kRootNode, "add", 0xabc, 10);
  sample::kernel(tree, kRootNode, "add", 0, 20);
  msgpack::Value file = encode(tree);
  CHECK((array<int32_t>(file["device"]) == std::vector<int32_t>{-1, 0, 0}));
  CHECK((array<int32_t>(file["variant"]) == std::vector<int32_t>{-1, 0, 1}));
  CHECK((array<uint8_t>(file["kinds"]) == std::vector<uint8_t>{1, 4, 4}));
  const msgpack::Value &variant = file["variants"][0];
  CHECK_EQ(variant["code_hash"].text, "0000000000000abc");
  CHECK_EQ(variant["grid"][0].integer, 4);
  CHECK_EQ(variant["block"][2].integer, 1);
  CHECK_EQ(variant["signature"].text, "*fp32,i32");
  CHECK_EQ(file["variants"][1]["code_hash"].text, "");
  CHECK_EQ(file["devices"][0]["clock_rate_khz"].integer, 1980000);
}

TEST(variants_hold_the_instructions_of_their_code_if_these_are_known) {
  InstructionMix mix{};
  mix[static_cast<size_t>(InstructionClass::kGlobalLoad)] = 64;
  mix[static_cast<size_t>(InstructionClass::kMma)] = 300;
  note_instructions(0x5eed, mix);
  CallPathTree tree;
  sample::kernel(tree, kRootNode, "add", 0x5eed, 10);
  sample::kernel(tree, kRootNode, "add", 0xabc, 20);
  msgpack::Value file = encode(tree);
  const msgpack::Value &known = file["variants"][0]["instructions"];
  CHECK((known.keys == std::vector<std::string>{"global loads", "mma"}));
  CHECK_EQ(known["global loads"].integer, 64);
  CHECK_EQ(known["mma"].integer, 300);
  const auto &keys = file["variants"][1].keys;
  CHECK(std::find(keys.begin(), keys.end(), "instructions") == keys.end());
}

TEST(integer_metrics_are_dense_with_validity_bits) {
  CallPathTree tree;
  sample::kernel(tree, kRootNode, "add", 1, int64_t{1} << 60);
  msgpack::Value file = encode(tree);
  const msgpack::Value &time = file["metrics"][0];
  CHECK_EQ(time["name"].text, "time (ns)");
  CHECK_EQ(time["unit"].text, "ns");
  CHECK_EQ(time["aggregation"].text, "inc");
  CHECK_EQ(time["dtype"].text, "<i8");
  CHECK((array<int64_t>(time["values"]) == std::vector<int64_t>{0, int64_t{1} << 60}));
  CHECK((array<uint8_t>(time["valid"]) == std::vector<uint8_t>{0b10}));
  CHECK(is_nil(time["offsets"]));
}

TEST(a_metric_with_a_value_on_every_row_needs_no_validity_bits) {
  CallPathTree tree;
  tree.metrics().add(kRootNode, "x", Aggregation::kExclusive, 1.5);
  const msgpack::Value file = encode(tree);
  CHECK(is_nil(file["metrics"][0]["valid"]));
  CHECK((array<double>(file["metrics"][0]["values"]) == std::vector<double>{1.5}));
}

TEST(vector_metrics_are_ragged) {
  CallPathTree tree;
  NodeIndex a = sample::scope(tree, kRootNode, "a");
  NodeIndex b = sample::scope(tree, kRootNode, "b");
  tree.metrics().add(a, "v", Aggregation::kInclusive, std::vector<int64_t>{1, 2, 3});
  tree.metrics().add(b, "v", Aggregation::kInclusive, std::vector<int64_t>{});
  const msgpack::Value file = encode(tree);
  const msgpack::Value &metric = file["metrics"][0];
  CHECK_EQ(metric["dtype"].text, "vec<i8");
  CHECK_EQ(metric["values"]["dtype"].text, "<i8");
  CHECK((array<int64_t>(metric["values"]) == std::vector<int64_t>{1, 2, 3}));
  CHECK((array<int64_t>(metric["offsets"]) == std::vector<int64_t>{0, 0, 3, 3}));
  CHECK((array<uint8_t>(metric["valid"]) == std::vector<uint8_t>{0b110}));
}

TEST(metrics_without_any_value_are_left_out) {
  CallPathTree tree;
  tree.metrics().builtin("time (ns)", Aggregation::kInclusive);
  CHECK_EQ(encode(tree)["metrics"].items.size(), 0);
}

TEST(columns_above_4096_bytes_are_compressed) {
  CallPathTree tree;
  sample::chain(tree, 10000);
  msgpack::Value file = encode(tree);
  CHECK_EQ(file["rows"].integer, 10001);
  CHECK_EQ(file["parents"]["size"].integer, 40004);
  CHECK_EQ(file["frames"]["codec"].text, "zlib");
  CHECK(file["frames"]["bytes"].text.size() < 4096);
}

TEST(distributions_hold_samples_until_a_sketch_covers_them) {
  CallPathTree tree;
  NodeIndex few = sample::scope(tree, kRootNode, "few");
  NodeIndex many = sample::scope(tree, kRootNode, "many");
  size_t column = tree.metrics().builtin("wall (ns)", Aggregation::kExclusive);
  tree.metrics().add_sample(column, few, 2.0);
  tree.metrics().add_sample(column, few, 0.0);
  for (int i = 1; i <= 100; ++i)
    tree.metrics().add_sample(column, many, 1000 + i);
  msgpack::Value file = encode(tree);
  CHECK_EQ(file["distributions"]["codec"].text, "raw");
  const msgpack::Value list = msgpack::parse(file["distributions"]["bytes"].text);
  const msgpack::Value &wall = list[0];
  CHECK_EQ(wall["metric"].text, "wall (ns)");
  CHECK((plain<int32_t>(wall["rows"]) == std::vector<int32_t>{1, 2}));
  CHECK((plain<int64_t>(wall["n"]) == std::vector<int64_t>{2, 100}));
  CHECK((plain<int64_t>(wall["zero_count"]) == std::vector<int64_t>{1, 0}));
  CHECK((plain<double>(wall["sum"]) == std::vector<double>{2, 105050}));
  CHECK((plain<double>(wall["max"]) == std::vector<double>{2, 1100}));
  CHECK((plain<int32_t>(wall["sample_offsets"]) == std::vector<int32_t>{0, 2, 2}));
  CHECK((plain<float>(wall["samples"]) == std::vector<float>{2, 0}));
  CHECK_EQ(plain<int32_t>(wall["bucket_offsets"])[1], 0);
  std::vector<int32_t> steps = plain<int32_t>(wall["bucket_steps"]);
  CHECK_EQ(steps.front(), 3455); // ln 1001 / ln 1.002002, rounded up
  CHECK(std::all_of(steps.begin() + 1, steps.end(), [](int32_t step) { return step == 1; }));
  int64_t counted = 0;
  for (int64_t count : plain<int64_t>(wall["bucket_count"]))
    counted += count;
  CHECK_EQ(counted, 100);
  CHECK_EQ(wall["collapses"].text, std::string(2, '\0'));
  CHECK_EQ(wall["value_error"].real, 0.0);
  CHECK_EQ(wall["gamma"].real, kSketchGamma);
}

TEST(facts_beside_the_tree_are_kept) {
  CallPathTree tree;
  FileFacts facts;
  facts.partial = true;
  facts.provenance = std::string("\x81\xA4host\xA1h", 8);
  facts.dropped = {{"buffer \xFF", 3}};
  msgpack::Value file = encode(tree, facts);
  CHECK_EQ(file["partial"].integer, 1);
  CHECK_EQ(file["provenance"]["host"].text, "h");
  CHECK_EQ(file["dropped"]["buffer \\xff"].integer, 3);
}

TEST(how_far_a_run_was_is_added_to_the_provenance) {
  CallPathTree tree;
  FileFacts facts;
  facts.so_far = SoFar{7, 3};
  for (std::string head :
       {std::string("\x81"), std::string("\xDE\0\x01", 3), std::string("\xDF\0\0\0\x01", 5)}) {
    facts.provenance = head + "\xA4host\xA1h";
    msgpack::Value file = encode(tree, facts);
    CHECK_EQ(file["provenance"]["host"].text, "h");
    CHECK_EQ(file["provenance"]["end_time_ns"].integer, 7);
    CHECK_EQ(file["provenance"]["steps_begun"].integer, 3);
  }
}

TEST(provenance_that_is_not_a_map_is_refused) {
  CallPathTree tree;
  FileFacts facts;
  for (const char *provenance : {"\x93", "\xDF"}) {
    facts.provenance = provenance;
    CHECK_THROWS(encode_profile(tree, {}, facts), Error);
  }
}

TEST(hostile_names_are_valid_text) {
  CallPathTree tree;
  sample::scope(tree, kRootNode, std::string("\xFF\n\0", 3));
  sample::scope(tree, kRootNode, "");
  msgpack::Value file = encode(tree);
  CHECK_EQ(file["strings"][1].text, std::string("\\xff\n\0", 6));
  CHECK_EQ(file["strings"][2].text, "");
}

TEST(device_use_names_scopes_and_the_devices_of_the_file) {
  CallPathTree tree;
  NodeIndex scope = sample::scope(tree, kRootNode, "step");
  sample::kernel(tree, scope, "add", 1, 10);
  DeviceUse whole;
  whole.device = 0;
  whole.busy_ns = 10;
  whole.idle = {30, 20};
  whole.latency.add(20);
  whole.latency.add(22);
  DeviceUse of_scope = whole, of_another_device = whole;
  of_scope.node = scope;
  of_another_device.device = 3; // that no row names
  tree.set_device_use({whole, of_scope, of_another_device});
  msgpack::Value uses = encode(tree)["device_use"];
  CHECK_EQ(uses.items.size(), 2);
  CHECK(is_nil(uses[0]["scope"]));
  CHECK_EQ(uses[1]["scope"].text, "step");
  CHECK_EQ(uses[0]["device"].integer, 0);
  CHECK_EQ(uses[0]["busy_ns"].integer, 10);
  CHECK_EQ(uses[0]["idle_ns"].integer, 30);
  CHECK_EQ(uses[0]["long_idle_ns"].integer, 20);
  CHECK_EQ(uses[0]["launches"].integer, 2);
  CHECK_EQ(uses[0]["latency_sum_ns"].integer, 42);
  CHECK_EQ(uses[0]["latency_first_bucket"].integer, LaunchLatency::bucket(20));
  CHECK_EQ(uses[0]["latency_buckets"].items.size(), 2);
}
