// Every entry point of libcupti fails in turn: a start says so and leaves nothing on, and later
// failures are counted losses.
#include <cstring>
#include <string>
#include <vector>

#include "check.h"
#include "collector/cupti/activity/activity_stream.h"
#include "collector/cupti/control/cupti_session.h"
#include "driver/cupti/cupti_library.h"
#include "support/error.h"

using namespace proton;

namespace {

void expect_all_off() {
  CHECK_EQ(fake_cupti_is_kind_enabled(cupti::kKindConcurrentKernel), 0);
  CHECK_EQ(fake_cupti_is_enabled(cupti::kDomainDriver, cupti::kCuLaunchKernelEx), 0);
  CHECK_EQ(fake_cupti_is_enabled(cupti::kDomainResource, cupti::kGraphNodeCreated), 0);
}

/// Switches off what a failed call left on in the double.
void switch_off() {
  const CuptiLibrary library = CuptiLibrary::open(double_options().candidates);
  library.functions().activity_flush_all(0);
  library.functions().activity_disable(cupti::kKindConcurrentKernel);
  library.functions().unsubscribe(nullptr);
}

} // namespace

TEST(a_start_that_fails_says_where_and_leaves_nothing_on) {
  for (const char *function :
       {"cuptiSubscribe", "cuptiActivityRegisterCallbacks", "cuptiEnableCallback",
        "cuptiActivityEnable", "cuptiActivityFlushPeriod"}) {
    CuptiOptions options = double_options();
    options.flush_period_ms = 50;
    fake_cupti_fail((std::string(function) + "=999").c_str());
    std::string error = error_of_start(options);
    fake_cupti_fail(nullptr);
    CHECK(holds(error, function));
    CHECK(holds(error, "999"));
    expect_all_off();
    CHECK_EQ(error_of_start(), ""); // and the next start works
  }
}

TEST(a_later_callback_or_kind_that_fails_undoes_the_earlier_ones) {
  CuptiOptions options = double_options();
  options.copies = true;
  for (const char *fault : {"cuptiEnableCallback@", "cuptiActivityEnable@"}) {
    for (int call = 2; call <= 4; ++call) {
      std::string function = std::string(fault).substr(0, std::string(fault).size() - 1);
      uint64_t before = fake_cupti_calls(function.c_str());
      fake_cupti_fail(
          (fault + std::to_string(before + static_cast<uint64_t>(call)) + "=3").c_str());
      CHECK(holds(error_of_start(options), function.c_str()));
      fake_cupti_fail(nullptr);
      expect_all_off();
    }
  }
}

TEST(a_clock_that_is_refused_is_converted_instead) {
  fake_cupti_fail("cuptiActivityRegisterTimestampCallback=15");
  CuptiSession session;
  fake_cupti_launch("k", 7);
  session.stop();
  fake_cupti_fail(nullptr);
  CHECK_EQ(session.tree(), "k=1 ");
  CHECK_EQ(session.collector.facts().clock, "vendor");
}

TEST(a_foreign_subscriber_is_named) {
  fake_cupti_other_subscriber("nsys");
  std::string error = error_of_start();
  fake_cupti_other_subscriber(nullptr);
  CHECK(holds(error, "held by 'nsys'"));
  fake_cupti_other_subscriber("CUPTI for <not provided>");
  CHECK(!holds(error_of_start(), "held by"));
  fake_cupti_other_subscriber(nullptr);
  CHECK(holds(error, "end that one first"));
  CHECK_EQ(error_of_start(), "");
}

TEST(a_missing_privilege_is_explained) {
  fake_cupti_fail("cuptiActivityEnable=35");
  std::string error = error_of_start();
  fake_cupti_fail(nullptr);
  CHECK(holds(error, "NVreg_RestrictProfilingToAdminUsers=0"));
}

TEST(failures_while_recording_are_counted) {
  struct Case {
    const char *fault;
    const char *reason;
  };
  for (Case each : {Case{"cuptiActivityFlushAll=999", "failed cuptiActivityFlushAll"},
                    Case{"cuptiActivityGetNextRecord=999", "rest of an activity buffer not "
                                                           "readable"},
                    Case{"cuptiActivityDisable=999", "failed call while CUPTI was switched off"},
                    Case{"cuptiUnsubscribe=999", "failed call while CUPTI was switched off"}}) {
    CuptiSession session;
    fake_cupti_launch("k", 7);
    fake_cupti_fail(each.fault);
    session.collector.flush();
    session.stop();
    fake_cupti_fail(nullptr);
    CHECK(session.lost(each.reason) != 0);
    CHECK(session.counts().is_complete());
    switch_off();
  }
}

TEST(a_count_of_dropped_records_that_fails_changes_nothing) {
  fake_cupti_fail("cuptiActivityGetNumDroppedRecords=999");
  CuptiSession session;
  fake_cupti_launch("k", 7);
  session.stop();
  fake_cupti_fail(nullptr);
  CHECK_EQ(session.tree(), "k=1 ");
}

TEST(buffers_that_another_profiler_takes_are_lost_launches_and_nothing_worse) {
  CuptiSession session;
  fake_cupti_launch("before", 7);
  fake_cupti_other_profiler(1);
  uint64_t before = fake_cupti_other_profiler_foreign_buffers();
  fake_cupti_launch("during", 7);
  session.stop();
  CHECK_EQ(fake_cupti_other_profiler_foreign_buffers(), before + 1);
  CHECK_EQ(session.collector.facts().taken_buffers, 1u);
  CHECK_EQ(session.counts().records, 0u);
  CHECK_EQ(session.lost("launch without a kernel record"), 2u);
}

TEST(a_buffer_of_another_profiler_is_read_and_left_to_it) {
  fake_cupti_other_profiler(1);
  fake_cupti_launch("theirs", 7);
  CuptiSession session;
  uint64_t before = session.collector.facts().foreign_buffers;
  fake_cupti_launch("ours", 7);
  session.stop();
  CHECK_EQ(session.collector.facts().foreign_buffers, before + 1);
  CHECK_EQ(session.counts().records, 1u);
}

TEST(copies_and_graphs_without_times_are_counted_and_not_added) {
  CuptiOptions options = double_options();
  options.copies = options.whole_graphs = true;
  CuptiSession session(options);
  Aggregator &sink = Aggregator::instance();
  CorrelationIds ids;
  LaunchLog launches(sink, ids);
  Timebase timebase;
  DeviceFacts devices;
  ReadingContext context{ids, launches, timebase, devices};
  alignas(8) char record[cupti::kMemcpy6Bytes] = {}; // start and end are 0
  auto set = [&record](size_t offset, uint32_t value) {
    std::memcpy(record + offset, &value, sizeof value);
  };
  set(cupti::record_offset::kKind, cupti::kKindMemcpy);
  set(cupti::memcpy_offset::kCorrelation, 1);
  sink.launched(ids.widen(1), LaunchKind::kCopy, 0);
  {
    RecordBatch batch(sink);
    CopyReader(context).read(record, batch);
  }
  set(cupti::graph_trace_offset::kCorrelation, 2);
  LayoutId layout = sink.graphs().add({{}, {}, true, true, true});
  sink.launched(ids.widen(2), LaunchKind::kGraph, layout);
  {
    RecordBatch batch(sink);
    GraphReader(context).read(record, batch);
  }
  sink.graphs().retire(layout);
  CHECK(session.counts().is_complete());
  session.stop();
  CHECK_EQ(session.tree(), "");
  CHECK_EQ(session.losses(),
           "copy record with end before start=1 kernel record with end before start=1 ");
}
