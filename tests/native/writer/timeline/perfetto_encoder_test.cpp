#include "writer/timeline/trace_encoder.h"

#include "calltree/scope_timeline.h"
#include "check.h"
#include "writer/timeline/perfetto_reader.h"
#include "writer/timeline/trace_events.h"

using namespace proton;
using namespace trace_sample;

namespace {

perfetto_file::Trace written(const std::vector<EventBatch> &batches, const TraceEnd &end = {}) {
  return perfetto_file::read(encode(TraceFormat::kPerfetto, batches, facts(), end));
}

const perfetto_file::Slice &parent_of(const perfetto_file::Trace &trace,
                                      const perfetto_file::Slice &slice) {
  return trace.slices.at(static_cast<size_t>(slice.parent));
}

} // namespace

TEST(a_kernel_stands_on_its_stream_and_an_arrow_leads_to_it) {
  perfetto_file::Trace trace = written({step_with_a_kernel()});
  CHECK_EQ(trace.errors, 0);
  const auto &step = trace.one("step");
  CHECK_EQ(step.start_ns, kUnixOffsetNs + 2000);
  CHECK_EQ(step.end_ns, kUnixOffsetNs + 2300);
  CHECK_EQ(step.category, "scope");
  CHECK_EQ(trace.track_name(step), "MainThread");
  CHECK_EQ(trace.tracks.at(step.track).tid, 4712);
  CHECK_EQ(trace.tracks.at(step.track).pid, 30'004'711); // with the rank

  const auto &call = trace.one("launch add");
  CHECK_EQ(call.category, "launch");
  CHECK(&parent_of(trace, call) == &step);
  const auto &work = trace.one("add");
  CHECK_EQ(work.category, "kernel");
  CHECK_EQ(work.end_ns - work.start_ns, 500);
  CHECK_EQ(work.annotations.at("call_stack"), R"(["ROOT","step","add"])");
  CHECK(work.flows == call.flows);
  CHECK_EQ(work.flows.size(), 1);
  const auto &stream = trace.tracks.at(work.track);
  CHECK_EQ(stream.name, "Stream 7");
  CHECK_EQ(trace.tracks.at(stream.parent).name, "GPU 0");
  uint64_t process = trace.tracks.at(stream.parent).parent;
  CHECK_EQ(trace.tracks.at(process).name, "rank 3 host gpu7: train.py");
}

TEST(the_session_tells_of_its_process_at_the_start_and_of_losses_at_the_end) {
  TraceEnd end;
  end.dropped = {{"buffer: full", 12}, {"late", 3}};
  end.clock_drift_ns = -250;
  perfetto_file::Trace trace = written({step_with_a_kernel()}, end);
  const auto &first = trace.one("proton_bench: start of session");
  CHECK_EQ(first.annotations.at("rank"), "3");
  CHECK_EQ(first.annotations.at("local_rank"), "1");
  CHECK_EQ(first.annotations.at("world_size"), "8");
  CHECK_EQ(first.annotations.at("host"), "gpu7");
  CHECK_EQ(first.start_ns, kUnixOffsetNs + 1000);
  const auto &last = trace.one("proton_bench: end of session");
  CHECK_EQ(last.start_ns, kUnixOffsetNs + 2900);
  CHECK_EQ(last.annotations.at("dropped.buffer: full"), "12");
  CHECK_EQ(last.annotations.at("dropped.late"), "3");
  CHECK_EQ(last.annotations.at("clock_drift_ns"), "-250");
  CHECK_EQ(last.annotations.at("is_partial"), "false");
}

TEST(the_profile_stands_behind_the_end_of_the_session_in_pieces) {
  std::string profile = "a" + std::string(kProfilePieceBytes, 'b') + "c";
  TraceEnd end;
  end.profile = [&] { return std::string_view(profile); };
  std::string raw = gzip::unpack(encode(TraceFormat::kPerfetto, {}, facts(), end));
  std::vector<proto::Field> packets = proto::Message(raw).all(1);
  proto::Message first = proto::Message(packets.at(packets.size() - 2).bytes).message(1984);
  proto::Message last = proto::Message(packets.back().bytes).message(1984);
  CHECK_EQ(first.count(1), 2);
  CHECK_EQ(last.count(1), 0);
  CHECK(first.text(2) + last.text(2) == profile);
  CHECK_EQ(written({}, end).errors, 0);
}

TEST(values_and_open_scopes_are_annotations) {
  EventBatch batch = step_with_a_kernel();
  batch.values = {{{{Name("flops"), "12.000000"}, {Name("bytes"), "7"}}}};
  batch.events[1].values = 1;
  batch.events[1].is_open = true;
  perfetto_file::Trace trace = written({batch});
  const auto &step = trace.one("step");
  CHECK_EQ(step.category, "metric");
  CHECK_EQ(step.annotations.at("flops"), "12.000000");
  CHECK_EQ(step.annotations.at("bytes"), "7");
  CHECK_EQ(step.annotations.at("open"), "true");
  CHECK(!trace.one("add").annotations.contains("open"));
}

TEST(a_parent_that_ends_after_a_flush_contains_its_children) {
  EventBatch first = step_with_a_kernel();
  first.events = {launch(2, 2000, 2100, 1), launch(2, 2100, 2200, 2)};
  EventBatch second;
  second.events = {scope(1, 2000, 2300), launch(2, 2400, 2450, 3)};
  perfetto_file::Trace trace = written({first, second});
  CHECK_EQ(trace.errors, 0);
  const auto &step = trace.one("step");
  CHECK_EQ(step.start_ns, kUnixOffsetNs + 1999); // before its first child, which is written
  CHECK_EQ(step.end_ns, kUnixOffsetNs + 2300);
  auto calls = trace.named("launch add");
  CHECK_EQ(calls.size(), 3);
  CHECK(&parent_of(trace, *calls[0]) == &step && &parent_of(trace, *calls[1]) == &step);
  CHECK_EQ(calls[2]->parent, -1);
}

TEST(of_scopes_with_equal_times_the_outer_one_is_the_parent) {
  EventBatch batch = step_with_a_kernel();
  batch.nodes.push_back({1, Name("inner"), FrameKind::kScope});
  batch.events = {scope(3, 2000, 2000), scope(3, 2000, 2300), scope(1, 2000, 2300)};
  perfetto_file::Trace trace = written({batch});
  CHECK_EQ(trace.errors, 0);
  for (const auto *inner : trace.named("inner"))
    CHECK(inner->parent >= 0);
  CHECK_EQ(trace.one("step").depth, 0);
}

TEST(work_that_overlaps_on_a_stream_stands_in_lanes) {
  EventBatch batch = step_with_a_kernel();
  batch.events = {kernel(2, 100, 300), kernel(2, 200, 400), kernel(2, 300, 350)};
  EventBatch late;
  late.events = {kernel(2, 150, 160), kernel(2, 500, 600)};
  perfetto_file::Trace trace = written({batch, late});
  CHECK_EQ(trace.errors, 0);
  std::vector<std::string> names;
  for (const auto *work : trace.named("add")) {
    names.push_back(trace.track_name(*work));
    CHECK_EQ(work->depth, 0);
  }
  std::vector<std::string> wanted{"Stream 7", "Stream 7 (line 1)", "Stream 7 (line 1)", "Stream 7",
                                  "Stream 7"};
  CHECK(names == wanted);
}

TEST(a_graph_has_an_arrow_to_each_stream_and_a_row_of_its_scopes) {
  EventBatch batch;
  batch.nodes = {
      {0, Name("replay"), FrameKind::kScope}, {1, Name("<captured_at>"), FrameKind::kGraph},
      {2, Name("a"), FrameKind::kScope},      {3, Name("first"), FrameKind::kKernel},
      {2, Name("b"), FrameKind::kScope},      {5, Name("second"), FrameKind::kKernel}};
  for (uint64_t id : {41u, 42u}) {
    auto at = static_cast<int64_t>(id * 10'000);
    batch.events.push_back(launch(2, at, at + 100, id));
    for (uint32_t stream : {7u, 9u}) {
      for (uint32_t node : {4u, 4u, 6u}) {
        at += 100;
        TimelineEvent work = kernel(node, at, at + 50, id, stream);
        work.is_of_graph = true;
        batch.events.push_back(work);
      }
    }
  }
  perfetto_file::Trace trace = written({batch});
  CHECK_EQ(trace.errors, 0);
  std::map<uint64_t, std::vector<const perfetto_file::Slice *>> by_flow;
  for (const auto &slice : trace.slices)
    for (uint64_t flow : slice.flows)
      by_flow[flow].push_back(&slice);
  size_t arrows = 0;
  for (const auto &[flow, ends] : by_flow)
    arrows += ends.size() == 2 && ends[0]->category == "launch" && ends[1]->name == "first";
  CHECK_EQ(arrows, 4);
  auto runs = trace.named("graph launch");
  CHECK_EQ(runs.size(), 4);
  CHECK_EQ(trace.track_name(*runs[0]), "Graph: Stream 7");
  CHECK_EQ(runs[0]->end_ns - runs[0]->start_ns, 250);
  CHECK_EQ(runs[0]->annotations.at("correlation"), "41");
  CHECK_EQ(runs[0]->category, "graph_scope");
  auto scopes = trace.named("a");
  CHECK_EQ(scopes.size(), 4);
  CHECK_EQ(scopes[0]->end_ns - scopes[0]->start_ns, 150);
  CHECK(&parent_of(trace, *scopes[0]) == runs[0]);
}

TEST(counters_have_tracks_with_their_units) {
  EventBatch batch;
  batch.counters = {{2000, gpu(), Name("SM clock (MHz)"), 1500.5},
                    {1500, gpu(), Name("SM clock (MHz)"), 1400},
                    {1600, -1, Name("load"), 0.25}};
  perfetto_file::Trace trace = written({batch});
  CHECK_EQ(trace.counters.size(), 3);
  CHECK_EQ(trace.counters[0].value, 1400);
  const auto &clock = trace.tracks.at(trace.counters[0].track);
  CHECK(clock.is_counter);
  CHECK_EQ(clock.name, "SM clock (MHz)");
  CHECK_EQ(clock.unit, "MHz");
  CHECK_EQ(trace.tracks.at(clock.parent).name, "GPU 0");
  CHECK_EQ(trace.tracks.at(trace.counters[1].track).unit, "");
}

TEST(scopes_inside_kernels_stand_on_warps_of_processors) {
  auto timeline = std::make_shared<TimelineLaunch>();
  timeline->kernel = 2;
  timeline->device = gpu();
  timeline->clock_hz = 2'000'000'000;
  timeline->scope_names =
      std::make_shared<const std::vector<Name>>(std::vector<Name>{Name("outer"), Name("inner")});
  TimelineProgram program;
  program.program = 5;
  program.processor = 17;
  program.init_ns = static_cast<uint64_t>(kUnixOffsetNs + 2500);
  program.pre_final_ns = program.init_ns + 300;
  program.post_final_ns = program.init_ns + 400;
  program.count = 3;
  timeline->programs = {program};
  timeline->instances = {
      {20, 40, 1, 1, 1, false}, {0, 200, 1, 1, 0, false}, {10, 30, 0, 1, 0, true}};
  EventBatch batch = step_with_a_kernel();
  batch.kernel_scopes = {timeline};
  perfetto_file::Trace trace = written({batch});
  CHECK_EQ(trace.errors, 0);
  const auto &inner = trace.one("inner");
  CHECK_EQ(inner.start_ns, kUnixOffsetNs + 2510);
  CHECK_EQ(inner.end_ns, kUnixOffsetNs + 2530);
  CHECK_EQ(trace.track_name(inner), "SM 17 warp 1");
  CHECK_EQ(parent_of(trace, inner).name, "outer");
  CHECK_EQ(inner.annotations.at("call_stack"), R"(["ROOT","step","add","inner"])");
  uint64_t processor = trace.tracks.at(inner.track).parent;
  CHECK_EQ(trace.tracks.at(processor).name, "SM 17");
  CHECK_EQ(trace.tracks.at(trace.tracks.at(processor).parent).name, "GPU 0");
  std::vector<uint64_t> flows;
  for (const auto *outer : trace.named("outer"))
    flows.insert(flows.end(), outer->flows.begin(), outer->flows.end());
  CHECK(flows.size() == 2 && flows[0] == flows[1]);
  for (const auto *work : trace.named("add"))
    if (work->category == "program") {
      CHECK_EQ(work->annotations.at("program"), "5");
      CHECK_EQ(work->end_ns - work->start_ns, 400);
    }
}

TEST(scopes_inside_kernels_are_shifted_and_stay_in_their_kernel) {
  auto timeline = std::make_shared<TimelineLaunch>();
  timeline->kernel = 2;
  timeline->device = gpu();
  timeline->clock_hz = 1'000'000'000;
  timeline->scope_names =
      std::make_shared<const std::vector<Name>>(std::vector<Name>{Name("inside"), Name("late")});
  TimelineProgram program;
  program.init_ns = static_cast<uint64_t>(kUnixOffsetNs + 702'500);
  program.pre_final_ns = program.post_final_ns = program.init_ns + 300;
  program.count = 2;
  timeline->programs = {program};
  timeline->instances = {{10, 200, 0, 0, 0, false}, {250, 900, 0, 0, 1, false}};
  timeline->timer = {-kUnixOffsetNs - 700'200, 300};
  timeline->put_into_kernel(2400, 2900);
  EventBatch batch = step_with_a_kernel();
  batch.kernel_scopes = {timeline};
  perfetto_file::Trace trace = written({batch});
  CHECK_EQ(trace.one("inside").start_ns, kUnixOffsetNs + 2410);
  CHECK_EQ(trace.one("inside").end_ns, kUnixOffsetNs + 2610);
  CHECK_EQ(trace.one("late").start_ns, kUnixOffsetNs + 2650);
  CHECK_EQ(trace.one("late").end_ns, kUnixOffsetNs + 2900); // the kernel's end
}

TEST(files_of_several_processes_may_be_joined) {
  TraceFacts other = facts();
  other.rank = 4;
  std::string joined = encode(TraceFormat::kPerfetto, {step_with_a_kernel()}) +
                       encode(TraceFormat::kPerfetto, {step_with_a_kernel()}, other);
  perfetto_file::Trace trace = perfetto_file::read(joined);
  CHECK_EQ(trace.errors, 0);
  auto work = trace.named("add");
  CHECK_EQ(work.size(), 2);
  CHECK(work[0]->track != work[1]->track);
  CHECK(work[0]->flows != work[1]->flows);
  CHECK_EQ(work[0]->start_ns, work[1]->start_ns);
}

TEST(parts_of_a_process_have_the_same_tracks) {
  std::string one = encode(TraceFormat::kPerfetto, {step_with_a_kernel()});
  EventBatch other = step_with_a_kernel();
  std::reverse(other.events.begin(), other.events.end());
  other.events.push_back(kernel(2, 100, 200, 0, 5));
  perfetto_file::Trace trace = perfetto_file::read(one + encode(TraceFormat::kPerfetto, {other}));
  auto work = trace.named("add");
  CHECK_EQ(work.size(), 3);
  CHECK_EQ(trace.track_name(*work[0]), "Stream 5");
  CHECK(work[1]->track == work[2]->track);
}

TEST(without_a_rank_a_process_has_its_own_number) {
  TraceFacts alone = facts();
  alone.rank = -1;
  alone.host = "";
  perfetto_file::Trace trace =
      perfetto_file::read(encode(TraceFormat::kPerfetto, {step_with_a_kernel()}, alone));
  const auto &step = trace.one("step");
  CHECK_EQ(trace.tracks.at(step.track).pid, 4711);
  CHECK_EQ(trace.tracks.at(trace.tracks.at(step.track).parent).name, "train.py");
}

TEST(every_flush_is_a_member_and_what_stands_before_it_is_a_whole_file) {
  auto encoder = make_trace_encoder(TraceFormat::kPerfetto);
  std::string out;
  encoder->begin(facts(), out);
  encoder->add(step_with_a_kernel(), out);
  encoder->flush(out);
  size_t members = 0;
  gzip::unpack(out, &members);
  CHECK_EQ(members, 2);
  CHECK_EQ(perfetto_file::read(out).named("add").size(), 1);
  encoder->flush(out);
  gzip::unpack(out, &members);
  CHECK_EQ(members, 2); // nothing is new
}

TEST(a_thread_may_change_its_name) {
  EventBatch batch = step_with_a_kernel();
  EventBatch renamed;
  renamed.threads = {{0, 4712, "worker"}};
  renamed.events = {scope(1, 4000, 4100)};
  perfetto_file::Trace trace = written({batch, renamed});
  CHECK_EQ(trace.track_name(*trace.named("step")[1]), "worker");
  CHECK_EQ(trace.named("step")[0]->track, trace.named("step")[1]->track);
}
