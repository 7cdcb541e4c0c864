#include "writer/tree/hatchet_writer.h"

#include <cmath>
#include <limits>

#include "check.h"
#include "writer/bytes/msgpack_reader.h"
#include "writer/tree/profile_writer.h"
#include "writer/tree/sample_tree.h"

using namespace proton;

namespace {

std::string encode(const CallPathTree &tree, FileFormat format,
                   const std::vector<Device> &devices = {}) {
  return encode_profile(tree, devices, FileFacts{}, format);
}

std::string compact(const CallPathTree &tree, const std::vector<Device> &devices = {}) {
  return encode(tree, FileFormat::kHatchetCompact, devices);
}

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

uint32_t depth_of(const std::string &compact_json) {
  uint32_t depth = 0;
  for (size_t at = 0; (at = compact_json.find("\"children\":[{", at)) != std::string::npos; ++at)
    ++depth;
  return depth;
}

} // namespace

TEST(an_empty_tree_has_upstreams_shape) {
  CallPathTree tree;
  CHECK_EQ(compact(tree), R"([{"children":[],"frame":{"name":"ROOT","type":"function"},)"
                          R"("metrics":{}},{}])");
}

TEST(the_file_text_is_upstreams_to_the_byte) {
  CallPathTree tree;
  sample::kernel(tree, sample::scope(tree, kRootNode, "step"), "add", 1, 70);
  const char *expected = R"json(
[
    {
        "children": [
            {
                "children": [
                    {
                        "children": [],
                        "frame": {
                            "name": "add",
                            "type": "function"
                        },
                        "metrics": {
                            "count": 1,
                            "device_id": "0",
                            "device_type": "CUDA",
                            "time (ns)": 70
                        }
                    }
                ],
                "frame": {
                    "name": "step",
                    "type": "function"
                },
                "metrics": {}
            }
        ],
        "frame": {
            "name": "ROOT",
            "type": "function"
        },
        "metrics": {
            "count": 0,
            "time (ns)": 0
        }
    },
    {
        "CUDA": {
            "0": {
                "arch": "90",
                "bus_width": 6144,
                "clock_rate": 1980000,
                "memory_clock_rate": 2619000,
                "num_sms": 132
            }
        }
    }
]
)json";
  CHECK_EQ(encode(tree, FileFormat::kHatchet, sample::one_gpu()), expected);
}

TEST(variants_are_summed_into_one_node) {
  CallPathTree tree;
  sample::kernel(tree, kRootNode, "add", 1, 70);
  sample::kernel(tree, kRootNode, "add", 2, 30);
  std::string text = compact(tree, sample::one_gpu());
  CHECK(
      contains(text, R"json("count":2,"device_id":"0","device_type":"CUDA","time (ns)":100)json"));
  CHECK(!contains(text, R"json("time (ns)":70)json"));
}

TEST(root_names_scalar_inclusive_metrics_only) {
  CallPathTree tree;
  NodeIndex node = sample::scope(tree, kRootNode, "s");
  MetricColumns &metrics = tree.metrics();
  metrics.add(node, "flops", Aggregation::kInclusive, 2.0);
  metrics.add(node, "cpu_time (ns)", Aggregation::kExclusive, int64_t{5});
  metrics.add(node, "width", Aggregation::kProperty, int64_t{7});
  metrics.add(node, "vector", Aggregation::kInclusive, std::vector<int64_t>{1, 2});
  metrics.builtin("unused", Aggregation::kInclusive);
  std::string text = compact(tree);
  CHECK(contains(text, R"json("name":"ROOT","type":"function"},"metrics":{"flops":0}})json"));
  CHECK(contains(text, R"json({"cpu_time (ns)":5,"flops":2.0,"vector":[1,2],"width":7})json"));
}

TEST(inclusive_values_of_the_root_itself_are_kept) {
  CallPathTree tree;
  tree.metrics().add(kRootNode, "bytes", Aggregation::kInclusive, int64_t{9});
  CHECK(contains(compact(tree), R"("metrics":{"bytes":9})"));
}

TEST(other_values_of_the_root_would_pass_for_inclusive_and_are_left_out) {
  CallPathTree tree;
  tree.metrics().add(kRootNode, "own", Aggregation::kExclusive, int64_t{9});
  CHECK(contains(compact(tree), R"("metrics":{}})"));
}

TEST(root_states_the_aggregations_that_hints_do_not_show) {
  CallPathTree tree;
  NodeIndex node = sample::scope(tree, kRootNode, "s");
  MetricColumns &metrics = tree.metrics();
  metrics.add(node, "width", Aggregation::kProperty, int64_t{7});
  metrics.add(node, "own", Aggregation::kExclusive, int64_t{7});
  metrics.add(node, "wall (ns)", Aggregation::kExclusive, int64_t{7});
  metrics.add(node, "vector", Aggregation::kInclusive, std::vector<int64_t>{1, 2});
  metrics.add(node, "flops", Aggregation::kInclusive, 2.0);
  CHECK(contains(compact(tree), R"([{"aggregations":{"own":"exc","vector":"inc","width":"pty"},)"
                                R"("children":[{"children":[],)"));
  msgpack::Value root = msgpack::parse(encode(tree, FileFormat::kHatchetMsgpack))[0];
  CHECK_EQ(root["aggregations"]["width"].text, "pty");
  CHECK_EQ(root.keys.size(), 4);
  CHECK_EQ(root["children"][0].keys.size(), 3);
}

TEST(non_finite_values_become_null) {
  CallPathTree tree;
  NodeIndex node = sample::scope(tree, kRootNode, "s");
  double infinity = std::numeric_limits<double>::infinity();
  tree.metrics().add(node, "a", Aggregation::kExclusive, std::nan(""));
  tree.metrics().add(node, "b", Aggregation::kExclusive, std::vector<double>{1, infinity});
  CHECK(contains(compact(tree), R"("metrics":{"a":null,"b":[1.0,null]})"));
}

TEST(numbers_keep_their_type_and_every_digit) {
  CallPathTree tree;
  NodeIndex node = sample::scope(tree, kRootNode, "s");
  MetricColumns &metrics = tree.metrics();
  metrics.add(node, "a", Aggregation::kExclusive, 0.1);
  metrics.add(node, "b", Aggregation::kExclusive, 1e300);
  metrics.add(node, "c", Aggregation::kExclusive, std::numeric_limits<int64_t>::min());
  metrics.add(node, "d", Aggregation::kExclusive, -3.0);
  CHECK(contains(compact(tree), R"({"a":0.1,"b":1e+300,"c":-9223372036854775808,"d":-3.0})"));
}

TEST(hostile_names_stay_valid_json) {
  CallPathTree tree;
  sample::scope(tree, kRootNode, std::string("q\"\\\n\t\x01\0z", 8));
  sample::scope(tree, kRootNode, "\xFF[bold]\xED\xA0\x80\xC3\xA4");
  std::string text = compact(tree);
  CHECK(contains(text, R"("name":"q\"\\\n\t\u0001\u0000z")"));
  CHECK(contains(text, "\"name\":\"\\\\xff[bold]\\\\ud800\xC3\xA4\""));
}

TEST(hostile_metric_names_stay_valid_json) {
  CallPathTree tree;
  tree.metrics().add(kRootNode, "\"\xFF", Aggregation::kInclusive, int64_t{1});
  CHECK(contains(compact(tree), R"("metrics":{"\"\\xff":1})"));
}

TEST(a_users_device_id_does_not_double_the_key_of_a_kernel) {
  CallPathTree tree;
  NodeIndex node = sample::kernel(tree, kRootNode, "add", 1, 70);
  tree.metrics().add(node, "device_id", Aggregation::kProperty, int64_t{3});
  std::string text = compact(tree, sample::one_gpu());
  CHECK(contains(text, R"("device_id":"0")"));
  CHECK(!contains(text, R"("device_id":3)"));
}

TEST(only_devices_that_kernels_ran_on_are_listed) {
  CallPathTree tree;
  std::vector<Device> devices = sample::one_gpu();
  devices.emplace_back().kind = "CPU";
  sample::kernel(tree, kRootNode, "add", 1, 70);
  CHECK(!contains(compact(tree, devices), R"("CPU")"));
}

TEST(deep_trees_are_folded_and_keep_their_sums) {
  CallPathTree tree;
  NodeIndex deepest = sample::chain(tree, 10000);
  tree.metrics().add(deepest, "bytes", Aggregation::kInclusive, int64_t{40});
  tree.metrics().add(tree.nodes()[deepest].parent, "bytes", Aggregation::kInclusive, int64_t{2});
  std::string text = compact(tree);
  CHECK_EQ(depth_of(text), kMaxHatchetDepth);
  CHECK(contains(text, R"("bytes":42)"));
  CHECK(folds_in_hatchet(tree));
}

TEST(a_tree_of_the_largest_depth_is_not_folded) {
  CallPathTree tree;
  sample::chain(tree, kMaxHatchetDepth);
  CHECK_EQ(depth_of(compact(tree)), kMaxHatchetDepth);
  CHECK(!folds_in_hatchet(tree));
}

TEST(blanks_do_not_outgrow_the_values_of_a_deep_tree) {
  CallPathTree tree;
  sample::chain(tree, 400);
  CHECK(!contains(encode(tree, FileFormat::kHatchet), std::string(257, ' ')));
}

TEST(msgpack_has_upstreams_key_order) {
  CallPathTree tree;
  NodeIndex node = sample::kernel(tree, kRootNode, "add", 1, 70);
  tree.metrics().add(node, "bytes", Aggregation::kInclusive, int64_t{8});
  msgpack::Value file =
      msgpack::parse(encode(tree, FileFormat::kHatchetMsgpack, sample::one_gpu()));
  CHECK_EQ(file.items.size(), 2);
  const msgpack::Value &root = file[0];
  CHECK((root.keys == std::vector<std::string>{"frame", "metrics", "children"}));
  CHECK((root["metrics"].keys == std::vector<std::string>{"time (ns)", "count", "bytes"}));
  CHECK_EQ(root["metrics"]["time (ns)"].integer, 0);
  const msgpack::Value &metrics = root["children"][0]["metrics"];
  CHECK((metrics.keys ==
         std::vector<std::string>{"time (ns)", "count", "device_id", "device_type", "bytes"}));
  CHECK_EQ(metrics["time (ns)"].integer, 70);
  CHECK_EQ(metrics["device_type"].text, "CUDA");
  CHECK_EQ(file[1]["CUDA"]["0"]["num_sms"].integer, 132);
}

TEST(msgpack_leaves_out_empty_leaves_and_json_keeps_them) {
  CallPathTree tree;
  sample::scope(tree, kRootNode, "empty");
  NodeIndex full = sample::scope(tree, kRootNode, "full");
  sample::kernel(tree, full, "add", 1, 70);
  sample::scope(tree, full, "empty");
  msgpack::Value file = msgpack::parse(encode(tree, FileFormat::kHatchetMsgpack));
  CHECK_EQ(file[0]["children"].items.size(), 1);
  CHECK_EQ(file[0]["children"][0]["children"].items.size(), 1);
  CHECK(contains(compact(tree), R"("name":"empty")"));
}

TEST(msgpack_holds_the_values_that_json_holds) {
  CallPathTree tree;
  sample::kernel(tree, kRootNode, "add", 1, 70);
  NodeIndex node = sample::kernel(tree, kRootNode, "add", 2, 30);
  tree.metrics().add(node, "ratio", Aggregation::kExclusive, 0.25);
  tree.metrics().add(node, "v", Aggregation::kInclusive, std::vector<double>{1.5, 2});
  msgpack::Value file = msgpack::parse(encode(tree, FileFormat::kHatchetMsgpack));
  const msgpack::Value &metrics = file[0]["children"][0]["metrics"];
  CHECK_EQ(metrics["time (ns)"].integer, 100);
  CHECK_EQ(metrics["ratio"].real, 0.25);
  CHECK_EQ(metrics["v"][0].real, 1.5);
  CHECK_EQ(metrics["v"][1].real, 2.0);
}
