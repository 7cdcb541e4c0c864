// What holds for both encoders, on random events.
#include <algorithm>
#include <random>
#include <tuple>

#include "check.h"
#include "sweeps.h"
#include "writer/bytes/json_reader.h"
#include "writer/timeline/event_lanes.h"
#include "writer/timeline/perfetto_reader.h"
#include "writer/timeline/trace_events.h"

using namespace proton;
using namespace trace_sample;

namespace {

using Times = std::tuple<std::string, int64_t, int64_t>; ///< name, beginning, end

/// Scopes of a program as its threads run them: each ends after its children, and is reported then.
class RandomProgram {
public:
  RandomProgram(uint32_t seed, int64_t max_step_ns) : random_(seed), max_step_ns_(max_step_ns) {
    for (uint32_t node = 1; node <= kDepth; ++node)
      nodes_.push_back({node - 1, Name("scope " + std::to_string(node)), FrameKind::kScope});
    nodes_.push_back({1, Name("work"), FrameKind::kKernel});
    batches_.emplace_back().nodes = nodes_;
    for (uint32_t thread = 0; thread < 3; ++thread)
      for (int step = 0; step < 400; ++step)
        call(thread, 1);
    for (int work = 0; work < 500; ++work)
      run();
  }

  std::vector<EventBatch> batches_;
  std::vector<Times> times_;

private:
  static constexpr uint32_t kDepth = 6;

  int64_t step() { return static_cast<int64_t>(random_() % static_cast<uint64_t>(max_step_ns_)); }
  void add(const TimelineEvent &event) {
    if (random_() % 16 == 0)
      batches_.emplace_back();
    batches_.back().events.push_back(event);
    times_.emplace_back(nodes_[event.node - 1].name.text(), event.start_ns + kUnixOffsetNs,
                        event.end_ns + kUnixOffsetNs);
  }
  void call(uint32_t thread, uint32_t node) {
    int64_t &now = now_[thread];
    now += step();
    int64_t start = now;
    for (uint64_t children = node < kDepth ? random_() % 3 : 0; children > 0; --children)
      call(thread, node + 1);
    now += step();
    add(scope(node, start, now, thread));
  }
  void run() {
    int64_t &now = now_[0];
    now += step();
    add(kernel(kDepth + 1, now, now + step() * 3, 0, 7 + random_() % 2));
  }

  std::mt19937 random_;
  const int64_t max_step_ns_;
  std::vector<EventNode> nodes_;
  int64_t now_[3] = {2000, 2000, 2000};
};

std::vector<Times> sorted(std::vector<Times> times) {
  std::sort(times.begin(), times.end());
  return times;
}

std::vector<Times> times_of(const perfetto_file::Trace &trace) {
  std::vector<Times> times;
  for (const auto &slice : trace.slices)
    if (!slice.is_instant)
      times.emplace_back(slice.name, slice.start_ns, slice.end_ns);
  return sorted(std::move(times));
}

const std::string kHostile[] = {"",
                                std::string("nul\0byte", 8),
                                "\"quotes\" and \\",
                                "\x01\x1f\x7f control\r\n\t",
                                "\xff\xfe no UTF-8 \xc3",
                                "\xed\xa0\x80 surrogate",
                                "\xf0\x9f\x94\xa5 fire",
                                std::string(5000, 'x')};

} // namespace

TEST(slices_have_parents_that_their_call_paths_name) {
  const uint32_t seeds = static_cast<uint32_t>(how_many(20, 3));
  for (uint32_t seed = 1; seed <= seeds; ++seed) {
    RandomProgram program(seed, 1000);
    perfetto_file::Trace trace =
        perfetto_file::read(encode(TraceFormat::kPerfetto, program.batches_));
    CHECK_EQ(trace.errors, 0);
    CHECK_EQ(times_of(trace).size(), program.times_.size());
    size_t misplaced = 0;
    for (const auto &slice : trace.slices) {
      if (slice.parent < 0)
        continue;
      const auto &parent = trace.slices[static_cast<size_t>(slice.parent)];
      const std::string &path = parent.annotations.at("call_stack");
      std::string start = path.substr(0, path.size() - 1);
      misplaced += !slice.annotations.at("call_stack").starts_with(start);
      misplaced += parent.start_ns > slice.start_ns || parent.end_ns < slice.end_ns;
    }
    CHECK_EQ(misplaced, 0);
  }
}

TEST(slices_keep_their_times_where_many_are_equal) {
  const uint32_t seeds = static_cast<uint32_t>(how_many(40, 6));
  for (uint32_t seed = 1; seed <= seeds; ++seed) {
    RandomProgram program(seed, 2 + seed % 4);
    perfetto_file::Trace trace =
        perfetto_file::read(encode(TraceFormat::kPerfetto, program.batches_));
    CHECK_EQ(trace.errors, 0);
    std::vector<Times> found = times_of(trace);
    CHECK_EQ(found.size(), program.times_.size());
    // Where a parent is written after a child that began with it, it begins a little earlier.
    auto by_end = [](const Times &time) {
      return std::tuple(std::get<0>(time), std::get<2>(time), std::get<1>(time));
    };
    auto order = [&](const Times &left, const Times &right) {
      return by_end(left) < by_end(right);
    };
    std::sort(found.begin(), found.end(), order);
    std::sort(program.times_.begin(), program.times_.end(), order);
    size_t differ = 0;
    for (size_t at = 0; at < std::min(found.size(), program.times_.size()); ++at) {
      const auto &[name, start, end] = program.times_[at];
      int64_t shift = start - std::get<1>(found[at]);
      differ += name != std::get<0>(found[at]) || end != std::get<2>(found[at]) || shift < 0 ||
                shift > EventLanes::kMaxShiftNs;
    }
    CHECK_EQ(differ, 0);
  }
}

TEST(events_in_any_order_are_written_once_each) {
  std::mt19937 random(7);
  RandomProgram program(3, 50);
  std::vector<TimelineEvent> all;
  for (const EventBatch &batch : program.batches_)
    all.insert(all.end(), batch.events.begin(), batch.events.end());
  std::shuffle(all.begin(), all.end(), random);
  std::vector<EventBatch> batches(1);
  batches[0].nodes = program.batches_[0].nodes;
  for (const TimelineEvent &event : all) {
    if (random() % 64 == 0)
      batches.emplace_back();
    batches.back().events.push_back(event);
  }
  perfetto_file::Trace trace = perfetto_file::read(encode(TraceFormat::kPerfetto, batches));
  CHECK_EQ(trace.errors, 0);
  const auto &last = trace.one("proton_bench: end of session");
  size_t lost = 0;
  if (last.annotations.contains("dropped.event of a timeline that found no lane"))
    lost = std::stoul(last.annotations.at("dropped.event of a timeline that found no lane"));
  CHECK_EQ(times_of(trace).size() + lost, all.size());
}

TEST(names_of_any_bytes_make_valid_files) {
  EventBatch batch;
  for (const std::string &name : kHostile)
    batch.nodes.push_back({0, Name(name), FrameKind::kScope});
  for (uint32_t node = 0; node < std::size(kHostile); ++node) {
    auto at = static_cast<int64_t>(2000 + 100 * node);
    batch.values.push_back({{{Name(kHostile[node]), kHostile[node]}}});
    TimelineEvent event = scope(node + 1, at, at + 50);
    event.values = node + 1;
    batch.events.push_back(event);
    batch.events.push_back(kernel(node + 1, at, at + 50));
    batch.threads.push_back({node, 100 + node, kHostile[node]});
    batch.counters.push_back({at, -1, Name(kHostile[node]), 1});
  }
  batch.events.push_back(scope(0xFFFFFFFF, 1, 2)); // no such node
  batch.events.back().values = 99;
  TraceFacts named = facts();
  named.host = named.process_name = kHostile[4];
  TraceEnd end;
  end.dropped = {{kHostile[4], 1}};
  end.profile = [] { return std::string_view(kHostile[4]); };
  perfetto_file::Trace trace =
      perfetto_file::read(encode(TraceFormat::kPerfetto, {batch}, named, end));
  CHECK_EQ(trace.errors, 0);
  CHECK_EQ(trace.slices.size(), 2 * std::size(kHostile) + 3);
  json::Value chrome = json::read(encode(TraceFormat::kChrome, {batch}, named, end));
  size_t slices = 0;
  for (const json::Value &event : chrome["traceEvents"].items)
    slices += event["ph"].text == "X";
  CHECK_EQ(slices, 2 * std::size(kHostile) + 1);
}

TEST(what_is_held_back_is_bounded_over_a_million_events) {
  const int batches = how_many(250, 60); // several times what is held
  for (TraceFormat format : {TraceFormat::kPerfetto, TraceFormat::kChrome}) {
    auto encoder = make_trace_encoder(format);
    std::string out;
    encoder->begin(facts(), out);
    size_t most_at_once = 0;
    int64_t at = 2000;
    for (int count = 0; count < batches; ++count) {
      EventBatch batch;
      if (count == 0)
        batch.nodes = {{0, Name("work"), FrameKind::kKernel}};
      for (int event = 0; event < 4000; ++event, at += 10)
        batch.events.push_back(kernel(1, at, at + 15));
      size_t before = out.size();
      encoder->add(batch, out);
      most_at_once = std::max(most_at_once, out.size() - before);
      out.clear(); // as when it is written
    }
    encoder->flush(out);
    // 65536 events are held at most, and nothing else grows: the last flush is not longer.
    CHECK(most_at_once > 0);
    CHECK(out.size() <= most_at_once * 5 / 4);
  }
}

TEST(what_finds_no_lane_is_counted) {
  EventBatch batch;
  batch.nodes = {{0, Name("work"), FrameKind::kKernel}};
  for (int event = 0; event < 70; ++event)
    batch.events.push_back(kernel(1, 2000 + event, 9000));
  perfetto_file::Trace trace = perfetto_file::read(encode(TraceFormat::kPerfetto, {batch}));
  CHECK_EQ(trace.named("work").size(), 64);
  CHECK_EQ(trace.one("proton_bench: end of session")
               .annotations.at("dropped.event of a timeline that found no lane"),
           "6");
  json::Value chrome = json::read(encode(TraceFormat::kChrome, {batch}));
  CHECK_EQ(chrome["proton_bench"]["dropped"]["event of a timeline that found no lane"].number, 6.0);
}
