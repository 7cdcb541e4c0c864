#include "writer/timeline/trace_encoder.h"

#include <algorithm>
#include <stdexcept>

#include "check.h"
#include "writer/bytes/json_reader.h"
#include "writer/timeline/trace_events.h"

using namespace proton;
using namespace trace_sample;

namespace {

struct Chrome {
  json::Value file;

  explicit Chrome(const std::vector<EventBatch> &batches, const TraceFacts &of = facts())
      : file(json::read(encode(TraceFormat::kChrome, batches, of))) {}

  std::vector<json::Value> with(const std::string &key, const std::string &text) const {
    std::vector<json::Value> found;
    for (const json::Value &event : file["traceEvents"].items)
      if (event.has(key) && event[key].text == text)
        found.push_back(event);
    return found;
  }
};

bool has(const std::string &text, const std::string &wanted) {
  return text.find(wanted) != std::string::npos;
}

} // namespace

TEST(a_kernel_has_the_form_that_upstream_gives_it_and_more_arguments) {
  std::string text = encode(TraceFormat::kChrome, {step_with_a_kernel()});
  CHECK(has(text, R"({"args":{"call_stack":["ROOT","step","add"],"correlation":9,"device":0,)"
                  R"("metrics":{},"stream":7},"cat":"kernel","dur":0.5,"name":"add","ph":"X",)"
                  R"("pid":0,"tid":200007,"ts":1.4})"));
  CHECK(has(text, R"({"args":{"call_stack":["ROOT","step"],"scope_id":1},"cat":"scope","dur":0.3,)"
                  R"("name":"step","ph":"X","pid":0,"tid":0,"ts":1.0})"));
  CHECK(has(text, R"({"bp":"e","cat":"flow","id":9,"name":"launch->kernel","ph":"f","pid":0,)"
                  R"("tid":200007,"ts":1.4})"));
  CHECK(text.starts_with(R"({"baseTimeNanoseconds":1790000000000001000,)"));
}

TEST(the_profile_stands_behind_all_slices_in_base64) {
  for (const auto &[profile, encoded] : std::map<std::string, std::string>{
           {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"\xff\xfe\xfd\xfc", "//79/A=="}}) {
    TraceEnd end;
    end.profile = [&profile] { return std::string_view(profile); };
    std::string text = encode(TraceFormat::kChrome, {step_with_a_kernel()}, facts(), end);
    CHECK(has(text,
              R"(,{"args":{"profile":")" + encoded +
                  R"(","rest":0},)"
                  R"("name":"proton_bench.profile","ph":"M","pid":0,"tid":0}],"proton_bench")"));
    TraceFacts upstream = facts();
    upstream.upstream_shape = true;
    CHECK(!has(encode(TraceFormat::kChrome, {}, upstream, end), "profile"));
  }
}

TEST(rows_are_named_as_upstream_names_them) {
  EventBatch batch = step_with_a_kernel();
  batch.events.push_back(kernel(2, 3000, 3100, 0, 9, gpu(1)));
  batch.events.push_back(kernel(2, 3050, 3100, 0, 9, gpu(1)));
  Chrome chrome({batch});
  std::map<std::string, double> rows;
  for (const json::Value &event : chrome.with("name", "thread_name"))
    rows[event["args"]["name"].text] = event["tid"].number;
  CHECK_EQ(rows.at("CPU Thread 0"), 0.0);
  CHECK_EQ(rows.at("GPU Stream 7"), 200007.0);
  CHECK_EQ(rows.at("GPU 1 Stream 9"), 1200009.0);
  CHECK(rows.contains("GPU 1 Stream 9 (line 1)"));
  CHECK_EQ(chrome.with("name", "process_name")[0]["args"]["name"].text, "Trace");
}

TEST(a_scope_with_values_shows_them_in_its_name) {
  EventBatch batch = step_with_a_kernel();
  batch.values = {{{{Name("flops"), "12.000000"}, {Name("bytes"), "7"}}}};
  batch.events[1].values = 1;
  batch.events[1].is_open = true;
  Chrome chrome({batch});
  json::Value step = chrome.with("cat", "metric").at(0);
  CHECK_EQ(step["name"].text, "step: <bytes, 7>, <flops, 12.000000>");
  CHECK_EQ(step["args"]["metrics"]["bytes"].text, "7");
  CHECK(step["args"]["open"].truth);
}

TEST(the_rank_is_told_as_kineto_tells_it) {
  std::string text = encode(TraceFormat::kChrome, {});
  CHECK(has(text, R"("distributedInfo": {"rank": 3, "local_rank": 1, "world_size": 8})"));
  TraceFacts alone = facts();
  alone.rank = alone.local_rank = alone.world_size = -1;
  CHECK(!has(encode(TraceFormat::kChrome, {}, alone), "rank"));
}

TEST(launches_and_copies_are_called_as_kineto_calls_them) {
  EventBatch batch = step_with_a_kernel();
  batch.nodes.push_back({1, Name("<memcpy H2D>"), FrameKind::kCopy});
  batch.nodes.push_back({1, Name("<memset>"), FrameKind::kCopy});
  for (uint32_t node : {3u, 4u}) {
    auto at = static_cast<int64_t>(1000 * node);
    batch.events.push_back(launch(node, at, at + 10, node));
    TimelineEvent copy = kernel(node, at + 100, at + 200, node);
    copy.kind = EventKind::kCopy;
    batch.events.push_back(copy);
  }
  Chrome chrome({batch});
  CHECK_EQ(chrome.with("name", "cudaLaunchKernel").size(), 1);
  CHECK_EQ(chrome.with("name", "cudaMemcpyAsync").size(), 1);
  CHECK_EQ(chrome.with("name", "cudaMemsetAsync").size(), 1);
  CHECK_EQ(chrome.with("cat", "gpu_memcpy").size(), 1);
  CHECK_EQ(chrome.with("cat", "gpu_memset").size(), 1);
  CHECK_EQ(chrome.with("cat", "flow").size(), 6);
}

TEST(a_graph_has_a_row_with_the_scopes_of_its_capture_and_an_arrow_to_each_stream) {
  EventBatch batch;
  batch.nodes = {{0, Name("replay"), FrameKind::kScope},
                 {1, Name("<captured_at>"), FrameKind::kGraph},
                 {2, Name("a"), FrameKind::kScope},
                 {3, Name("work"), FrameKind::kKernel}};
  batch.events.push_back(launch(2, 2000, 2100, 41));
  for (uint32_t stream : {7u, 7u, 9u}) {
    auto at = static_cast<int64_t>(3000 + 100 * batch.events.size());
    TimelineEvent work = kernel(4, at, at + 50, 41, stream);
    work.is_of_graph = true;
    batch.events.push_back(work);
  }
  Chrome chrome({batch});
  auto scopes = chrome.with("name", "a");
  CHECK_EQ(scopes.size(), 2);
  CHECK_EQ(scopes[0]["tid"].number, 100007.0);
  CHECK_EQ(scopes[0]["dur"].number, 0.15);
  CHECK(!scopes[0]["args"].has("call_stack"));
  CHECK_EQ(chrome.with("ph", "s").size(), 2);
  CHECK_EQ(chrome.with("ph", "f").size(), 2);
  CHECK_EQ(chrome.with("name", "<captured_at>").size(), 2);
}

TEST(what_is_flushed_is_a_whole_file_with_the_tail) {
  auto encoder = make_trace_encoder(TraceFormat::kChrome);
  std::string out;
  encoder->begin(facts(), out);
  json::read(out + std::string(encoder->tail()));
  encoder->add(step_with_a_kernel(), out);
  encoder->flush(out);
  json::Value cut = json::read(out + std::string(encoder->tail()));
  encoder->end({}, out);
  json::Value whole = json::read(out);
  CHECK_EQ(cut["traceEvents"].items.size(), whole["traceEvents"].items.size());
  CHECK(whole["proton_bench"].has("clock_drift_ns"));
}

TEST(what_was_encoded_can_be_taken_away_while_more_is) {
  EventBatch batch = step_with_a_kernel();
  for (int64_t i = 0; i < 20'000; ++i)
    batch.events.push_back(kernel(2, 3000 + i, 3001 + i, static_cast<uint64_t>(i) + 10));
  std::string expected = encode(TraceFormat::kChrome, {batch});

  auto encoder = make_trace_encoder(TraceFormat::kChrome);
  std::string file, out;
  size_t most = 0, spills = 0;
  encoder->spill_to([&](std::string &bytes) {
    most = std::max(most, bytes.size());
    file += bytes;
    bytes.clear();
    if (++spills == 2)
      CHECK(json::read(file + std::string(encoder->tail())).has("traceEvents"));
  });
  encoder->begin(facts(), out);
  encoder->add(batch, out);
  encoder->flush(out);
  most = std::max(most, out.size());
  encoder->end({}, out);

  CHECK(spills > 2);
  CHECK(most < expected.size() / 3);
  CHECK(file + out == expected);
}

TEST(an_encoder_whose_bytes_nobody_takes_fails_with_the_reason) {
  EventBatch batch = step_with_a_kernel();
  for (int64_t i = 0; i < 20'000; ++i)
    batch.events.push_back(kernel(2, 3000 + i, 3001 + i));
  auto encoder = make_trace_encoder(TraceFormat::kChrome);
  encoder->spill_to([](std::string &) { throw std::runtime_error("the disk is full"); });
  std::string out;
  encoder->begin(facts(), out);
  encoder->add(batch, out);
  CHECK_THROWS(encoder->flush(out), std::runtime_error);
  CHECK(out.starts_with("{\"baseTimeNanoseconds\""));
}
