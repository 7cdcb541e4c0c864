// The files of one small timeline, byte for byte: a change here is a change of the file formats.
//
// With PROTON_BENCH_WRITE_GOLDEN in the environment the files are written instead.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "calltree/scope_timeline.h"
#include "check.h"
#include "writer/timeline/gzip_members.h"
#include "writer/timeline/trace_events.h"

using namespace proton;
using namespace trace_sample;

namespace {

// Steps on two threads, a graph on two streams, work that overlaps, a counter, scopes in a kernel.
EventBatch timeline() {
  EventBatch batch = step_with_a_kernel();
  batch.threads.push_back({1, 4713, "w\xc3\xb6rker \xff"});
  batch.nodes.insert(batch.nodes.end(), {{1, Name("<captured_at>"), FrameKind::kGraph},
                                         {3, Name("layer"), FrameKind::kScope},
                                         {4, Name("matmul"), FrameKind::kKernel},
                                         {0, Name("aten::mm"), FrameKind::kOp},
                                         {0, Name("<memcpy H2D>"), FrameKind::kCopy}});
  batch.values = {{{{Name("flops"), "12.000000"}}}};
  batch.events[1].values = 1;
  batch.events.push_back(launch(3, 3000, 3100, 41));
  for (uint32_t stream : {7u, 9u}) {
    TimelineEvent work = kernel(5, 3200 + stream, 3300 + stream, 41, stream);
    work.is_of_graph = true;
    batch.events.push_back(work);
  }
  batch.events.push_back(kernel(2, 3250, 3400));
  TimelineEvent op = scope(6, 4000, 4200, 1);
  op.kind = EventKind::kOp;
  op.is_open = true;
  batch.events.push_back(op);
  TimelineEvent copy = kernel(7, 4000, 4100, 0, 13);
  copy.kind = EventKind::kCopy;
  batch.events.push_back(copy);
  batch.counters = {{3500, gpu(), Name("SM clock (MHz)"), 1980}};
  auto scopes = std::make_shared<TimelineLaunch>();
  scopes->kernel = 2;
  scopes->device = gpu();
  scopes->clock_hz = 2'000'000'000;
  scopes->scope_names = std::make_shared<const std::vector<Name>>(1, Name("load"));
  TimelineProgram program;
  program.processor = 17;
  program.init_ns = static_cast<uint64_t>(kUnixOffsetNs + 2400);
  program.pre_final_ns = program.post_final_ns = program.init_ns + 400;
  program.count = 1;
  scopes->programs = {program};
  scopes->instances = {{0, 200, 1, 1, 0, false}};
  batch.kernel_scopes = {scopes};
  return batch;
}

// Slices that begin or end at the same time, and some of no length: as parent and child they nest,
// one after the other they do not.
EventBatch ties() {
  EventBatch batch;
  batch.threads = {{0, 4712, "MainThread"}};
  batch.nodes = {{0, Name("outer"), FrameKind::kScope},
                 {1, Name("inner"), FrameKind::kScope},
                 {2, Name("innermost"), FrameKind::kScope},
                 {1, Name("nothing"), FrameKind::kScope},
                 {1, Name("add"), FrameKind::kKernel}};
  batch.events = {scope(4, 2000, 2000),  scope(3, 2000, 2300),  scope(2, 2000, 2300),
                  scope(4, 2300, 2300),  scope(1, 2000, 2300),  scope(1, 2300, 2400),
                  kernel(5, 3000, 3000), kernel(5, 3000, 3100), kernel(5, 3100, 3100)};
  return batch;
}

std::string golden(const std::string &name) {
  std::ifstream file(std::string(TEST_DATA "/golden/") + name, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

void check_golden(TraceFormat format, const std::string &name,
                  const EventBatch &batch = timeline()) {
  TraceEnd end;
  end.dropped = {{"buffer was full", 2}};
  end.clock_drift_ns = 40;
  std::string written = encode(format, {batch}, facts(), end);
  if (std::getenv("PROTON_BENCH_WRITE_GOLDEN") != nullptr)
    std::ofstream(std::string(TEST_DATA "/golden/") + name, std::ios::binary) << written;
  std::string wanted = golden(name);
  // Versions of zlib pack differently.
  if (format == TraceFormat::kPerfetto)
    CHECK(gzip::unpack(written) == gzip::unpack(wanted));
  else
    CHECK_EQ(written, wanted);
}

} // namespace

TEST(a_timeline_in_perfettos_format_is_the_golden_one) {
  check_golden(TraceFormat::kPerfetto, "timeline.pftrace");
}

TEST(a_timeline_in_chromes_format_is_the_golden_one) {
  check_golden(TraceFormat::kChrome, "timeline.chrome_trace");
}

TEST(slices_with_equal_times_are_the_golden_ones) {
  check_golden(TraceFormat::kPerfetto, "ties.pftrace", ties());
  check_golden(TraceFormat::kChrome, "ties.chrome_trace", ties());
}
