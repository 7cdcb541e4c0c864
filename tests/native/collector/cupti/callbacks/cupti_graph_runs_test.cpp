// Graphs over flushes and many replays, and earlier graphs with one entry per launch.
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "collector/cupti/callbacks/cupti_graph_launches.h"
#include "collector/cupti/callbacks/graph_source.h"
#include "driver/cuda/cuda_abi.h"
#include "driver/cupti/cupti_records.h"

using namespace proton;

TEST(graphs_of_before_show_their_kernels_where_others_are_one_entry) {
  NothingIsLeft after;
  uint32_t executable = fake_cupti_graph_instantiate(captured("unseen", {"a", "b"}));
  CuptiOptions options = double_options();
  options.whole_graphs = true;
  CuptiSession session(options);
  launch("late", executable, 3);
  session.collector.flush();
  CHECK(session.counts().is_complete());
  session.stop();
  CHECK_EQ(session.tree(), "late/<captured_at>/a=3 late/<captured_at>/b=3 ");
  CHECK_EQ(session.losses(), "");
}

TEST(a_flush_does_not_end_an_open_capture) {
  NothingIsLeft after;
  CuptiSession session;
  launch("replay", fake_cupti_graph_instantiate(captured("earlier", {"a"})));
  fake_cupti_capture_begin(7);
  capture("capture", {"b"});
  session.collector.flush();
  CHECK(session.counts().is_complete());
  uint32_t graph = fake_cupti_capture_end(7);
  CHECK(graph != 0);
  launch("replay", fake_cupti_graph_instantiate(graph));
  session.stop();
  CHECK_EQ(session.tree(), "replay/<captured_at>/earlier/a=1 replay/<captured_at>/capture/b=1 ");
  CHECK_EQ(session.losses(), "");
}

TEST(a_flush_does_not_end_a_capture_that_was_open_over_a_pause) {
  NothingIsLeft after;
  CuptiSession session;
  fake_cupti_capture_begin(7);
  session.core->deactivate();
  session.collector.stop();
  session.collector.start();
  session.core->activate();
  fake_cupti_launch("aside", 8);
  session.collector.flush();
  CHECK(fake_cupti_capture_end(7) != 0);
  session.stop();
  CHECK_EQ(session.tree(), "aside=1 ");
}

TEST(each_thread_captures_its_own_default_stream) {
  static CorrelationIds ids;
  static LaunchLog log(Aggregator::instance(), ids);
  static GraphTable table(book());
  GraphSource source(log, book(), table);
  auto call = [&source](uint32_t cbid) {
    cuda::StreamBeginCaptureParams parameters{reinterpret_cast<void *>(cuda::kStreamPerThread)};
    cupti::CallbackData data{};
    data.site = cupti::kExit;
    data.function_params = &parameters;
    source.handle(cupti::kDomainDriver, cbid, &data);
  };
  call(cupti::kCuStreamBeginCapture);
  std::thread([&call] {
    call(cupti::kCuStreamBeginCapture);
    CHECK(is_capturing());
    call(cupti::kCuStreamEndCapture);
    CHECK(!is_capturing());
  }).join();
  CHECK(is_capturing());
  CHECK(any_capture_open());
  call(cupti::kCuStreamEndCapture);
  CHECK(!is_capturing());
  CHECK(!any_capture_open());
}

TEST(copies_that_run_while_a_flush_finds_a_capture_open_are_recorded_later) {
  CuptiOptions options = double_options();
  options.copies = true;
  CuptiSession session(options);
  fake_cupti_hold(1);
  {
    ScopeGuard guard("load");
    fake_cupti_copy(cupti::kCopyHostToDevice, 1024, 8);
  }
  fake_cupti_capture_begin(7);
  session.collector.flush();
  fake_cupti_capture_end(7);
  session.stop(); // waits for the copy
  CHECK_EQ(session.tree("bytes"), "load/<memcpy H2D>=1024 ");
  CHECK_EQ(session.losses(), "");
}

TEST(a_thousand_graphs_take_no_more_memory_with_their_replays) {
  constexpr size_t kGraphs = 1000;
  constexpr int kReplays = 100'000;
  constexpr int kRounds = 5;
  NothingIsLeft after;
  CuptiSession session;
  std::vector<uint32_t> executables;
  for (size_t i = 0; i < kGraphs; ++i) {
    std::string scope = "capture " + std::to_string(i % 50);
    executables.push_back(fake_cupti_graph_instantiate(captured(scope.c_str(), {"a", "b"})));
  }
  size_t captures = book().capture_count(), bytes = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kReplays / kRounds; ++i)
      launch("replay", executables[static_cast<size_t>(i) % kGraphs]);
    session.collector.flush();
    size_t size = session.core->encode(0, FileFormat::kProton).size();
    CHECK_EQ(book().open_count(), 0);
    CHECK_EQ(book().layout_count(), kGraphs);
    CHECK_EQ(book().capture_count(), captures);
    CHECK(round == 0 || size < bytes + bytes / 20); // larger numbers, no more nodes
    bytes = round == 0 ? size : bytes;
  }
  CHECK_EQ(session.counts().records, static_cast<uint64_t>(kReplays));
  CHECK_EQ(session.losses(), "");
  session.stop();
}
