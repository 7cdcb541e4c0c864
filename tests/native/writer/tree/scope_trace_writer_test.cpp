
#include "check.h"
#include "writer/tree/profile_writer.h"
#include "writer/tree/sample_tree.h"

using namespace proton;

namespace {

size_t count_of(const std::string &text, const std::string &wanted) {
  size_t count = 0;
  for (size_t at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1))
    ++count;
  return count;
}

// One launch of a kernel, on a clock of 2 GHz.
struct Trace {
  CallPathTree tree;
  ScopeTimeline timeline;
  std::vector<CycleScope> scopes{{"outer", kNoScope}, {"inner", 0}};
  std::vector<TimelineScope> instances;
  TimelineProgram program;
  uint64_t clock_hz = 2'000'000'000;
  bool upstream_shape = false;

  Trace() {
    program.program = 5;
    program.processor = 7;
    program.init_ns = 1000;
    program.pre_final_ns = 3000;
    program.post_final_ns = 3200;
  }
  void add(uint8_t scope, uint64_t start, uint64_t cycles, uint16_t warp = 0, uint16_t end_warp = 0,
           bool is_async = false) {
    instances.push_back({start, cycles, warp, end_warp, scope, is_async});
  }
  std::string write(const std::string &kernel = "add", int32_t device = 0) {
    TimelineRecord record;
    record.clock_hz = clock_hz;
    record.scopes = scopes;
    program.count = static_cast<uint32_t>(instances.size());
    record.programs = {&program, 1};
    record.instances = instances;
    NodeIndex host = sample::scope(tree, kRootNode, "host");
    CHECK(timeline.add(tree.child(host, Name(kernel), FrameKind::kKernel), device, record));
    return write_scope_trace(tree, timeline, sample::one_gpu(), upstream_shape);
  }
};

} // namespace

TEST(a_scope_is_one_event_in_nanoseconds_of_the_real_clock) {
  Trace trace;
  trace.add(0, 0, 401);
  std::string expected =
      R"J({"args":{"Finalization Time (ns)":200,"Frequency (MHz)":2000.0,"Init Time (ns)":1000,)J"
      R"J("Post Final Time (ns)":3200,"call_stack":["ROOT","host","add"]},"cat":"add",)J"
      R"J("cname":"cq_build_passed","dur":0.2005,"name":"outer","ph":"X","pid":"add Core7 CTA5",)J"
      R"J("tid":"warp 0 (line 0)","ts":0.0})J";
  std::string written = trace.write();
  CHECK(written.find(expected) != std::string::npos);
  CHECK(written.starts_with(R"J({"baseTimeNanoseconds":1000,"displayTimeUnit":"ns",)J"));
  CHECK(written.find(R"J("name":"add CTA5","ph":"X","pid":"Cores","tid":"Core 7 (line 0)")J") !=
        std::string::npos);
}

TEST(upstreams_form_has_no_events_but_those_of_scopes) {
  Trace trace;
  trace.add(0, 0, 401);
  trace.upstream_shape = true;
  std::string written = trace.write();
  CHECK_EQ(count_of(written, R"J("ph":"X")J"), 1);
  CHECK_EQ(count_of(written, R"J("Init Time (ns)")J"), 1);
}

TEST(scopes_that_overlap_stand_in_lanes) {
  Trace trace;
  trace.add(1, 10, 20);
  trace.add(1, 30, 20);
  trace.add(0, 0, 100);
  trace.add(0, 0, 100, 1, 1);
  std::string written = trace.write();
  CHECK_EQ(count_of(written, "warp 0 (line 0)"), 1);
  CHECK_EQ(count_of(written, "warp 0 (line 1)"), 2);
  CHECK_EQ(count_of(written, "warp 1 (line 0)"), 1);
}

TEST(asynchronous_events_are_ranges_or_links_between_warps) {
  Trace trace;
  trace.add(0, 0, 100, 1, 1, true);
  trace.add(1, 20, 60, 0, 2, true);
  std::string written = trace.write();
  CHECK_EQ(count_of(written, R"("cat":"async")"), 1);
  CHECK_EQ(count_of(written, R"("cat":"flow")"), 2);
  CHECK_EQ(count_of(written, R"("bind_id":1,"flow_out":true)"), 1);
  CHECK_EQ(count_of(written, R"("bind_id":1,"flow_in":true)"), 1);
  CHECK(written.find(R"J("tid":"warp 2 (line 0)","ts":0.04)J") != std::string::npos);
}

TEST(a_program_that_lost_records_is_placed_by_its_end) {
  Trace trace;
  trace.program.is_lossy = true;
  trace.program.last_cycle = 1000;
  trace.add(0, 0, 1000);
  CHECK(trace.write().find(R"J("tid":"warp 0 (line 0)","ts":1.5)J") != std::string::npos);
}

TEST(an_unknown_clock_is_taken_for_one_gigahertz) {
  Trace trace;
  trace.clock_hz = 0;
  trace.add(0, 0, 401);
  std::string written = trace.write();
  CHECK(written.find(R"J("Frequency (MHz)":1000.0)J") != std::string::npos);
  CHECK(written.find(R"("dur":0.401,)") != std::string::npos);
}

TEST(names_are_escaped_and_times_before_the_beginning_do_no_harm) {
  Trace trace;
  trace.program.pre_final_ns = 0;
  trace.program.post_final_ns = 0;
  trace.scopes[0].name = "a\"\n\xff";
  trace.add(0, uint64_t{1} << 42, (uint64_t{1} << 43) - 1);
  std::string written = trace.write("k\"", 99);
  CHECK(written.find(R"("name":"a\"\n)") != std::string::npos);
  CHECK(written.find('\n') == written.size() - 1);
  CHECK(written.find(R"("cat":"k\"")") != std::string::npos);
}

TEST(without_a_timeline_the_trace_is_empty) {
  CallPathTree tree;
  CHECK_EQ(encode_profile(tree, {}, {}, FileFormat::kChromeTrace),
           "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[]}\n");
}
