#include "writer/perfetto_encoder.h"

#include "check.h"
#include "writer/perfetto_reader.h"
#include "writer/trace_events.h"

using namespace proton;
using namespace trace_sample;

namespace {

perfetto_file::Trace written(const std::vector<EventBatch> &batches) {
  return perfetto_file::read(encode(TraceFormat::kPerfetto, batches));
}

EventBatch step_with_a_kernel() {
  EventBatch batch;
  batch.nodes = {{0, Name("step"), FrameKind::kScope}, {1, Name("add"), FrameKind::kKernel}};
  batch.threads = {{0, 4712, "MainThread"}};
  batch.events = {launch(2, 2100, 2200, 9), scope(1, 2000, 2300), kernel(2, 2400, 2900, 9)};
  return batch;
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
  CHECK_EQ(trace.tracks.at(step.track).pid, 4711);
  const auto &call = trace.one("launch add");
  CHECK_EQ(call.category, "launch");
  CHECK(&trace.slices[static_cast<size_t>(call.parent)] == &step);
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
