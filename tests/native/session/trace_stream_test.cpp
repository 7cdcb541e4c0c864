#include "session/trace_stream.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <semaphore>

#include "check.h"
#include "scratch_folder.h"
#include "session/text_encoder.h"
#include "support/clock.h"
#include "support/error.h"
#include "writer/file/flock_double.h"

using namespace proton;

namespace {

constexpr int64_t kSoon_ns = 60'000'000'000;
const std::vector<TraceFormat> kBoth = {TraceFormat::kChrome, TraceFormat::kPerfetto};

int64_t soon() { return monotonic_ns() + kSoon_ns; }

StreamPlan plan_for(const std::string &path, std::vector<TraceFormat> formats,
                    EncoderFactory factory = {}) {
  StreamPlan plan;
  plan.path = path;
  plan.formats = std::move(formats);
  plan.facts.process_id = 7;
  plan.make_encoder = factory ? factory : [](TraceFormat) -> std::unique_ptr<TraceEncoder> {
    return std::make_unique<TextEncoder>();
  };
  return plan;
}

TraceEnd saying(const char *profile) {
  TraceEnd end;
  end.profile = [profile] { return std::string_view(profile); };
  return end;
}

// A stream in a folder of its own.
struct Streaming {
  explicit Streaming(std::vector<TraceFormat> chosen = {TraceFormat::kChrome},
                     EncoderFactory factory = {})
      : formats(std::move(chosen)),
        stream(TraceStream::open(plan_for(folder.file("x"), formats, factory))) {}
  ~Streaming() { stream->close(); }
  std::vector<EndedFile> end(std::set<uint32_t> phases = {0}) const {
    for (uint32_t phase : phases) {
      stream->set_facts(saying("facts"));
      stream->end_phase(phase);
    }
    StreamEnd end;
    end.formats = formats;
    end.phases = std::move(phases);
    return stream->end(std::move(end), soon());
  }
  ScratchFolder folder;
  std::vector<TraceFormat> formats;
  std::shared_ptr<TraceStream> stream;
};

std::string refusal(const Streaming &streaming) {
  try {
    streaming.end();
  } catch (const Error &error) {
    CHECK(error.code() == ErrorCode::kOutput);
    return error.what();
  }
  return "";
}

} // namespace

TEST(events_stand_in_the_file_in_the_order_of_their_batches) {
  Streaming streaming;
  CHECK(streaming.stream->take(0, batch_of({1, 2}, "a")));
  CHECK(streaming.stream->take(0, batch_of({3})));
  std::vector<EndedFile> files = streaming.end();
  CHECK_EQ(files.size(), 1);
  CHECK_EQ(files[0].path, streaming.folder.file("x.chrome_trace"));
  CHECK_EQ(streaming.folder.content("x.chrome_trace"),
           "begin 7\nnode a\nevent 1\nevent 2\nevent 3\nend facts\n");
  CHECK_EQ(streaming.folder.entries(), 1);
  CHECK_EQ(streaming.stream->counts().events, 3);
  CHECK_EQ(streaming.stream->counts().bytes, 49);
}

TEST(a_stream_without_events_is_a_whole_file) {
  Streaming streaming(kBoth);
  CHECK_EQ(streaming.end().size(), 2);
  CHECK_EQ(streaming.folder.content("x.pftrace"), "begin 7\nend facts\n");
}

TEST(the_partial_file_is_whole_at_each_flush) {
  Streaming streaming;
  streaming.stream->take(0, batch_of({1}));
  CHECK(streaming.stream->catch_up(soon()));
  CHECK_EQ(streaming.folder.content("x.partial.chrome_trace"), "begin 7\nevent 1\ntail");
  streaming.stream->take(0, batch_of({2}));
  CHECK(streaming.stream->catch_up(soon()));
  CHECK_EQ(streaming.folder.content("x.partial.chrome_trace"), "begin 7\nevent 1\nevent 2\ntail");
}

TEST(much_is_written_at_once_and_little_by_the_clock) {
  Streaming streaming;
  EventBatch much;
  much.events.resize(TraceFile::kFlushBytes / sizeof("event 0"));
  streaming.stream->take(0, std::move(much));
  // The job behind it is done after it.
  CHECK(WriterThread::instance().wait_for(WriterThread::instance().push_always([] {}), soon()));
  CHECK(streaming.folder.content("x.partial.chrome_trace").size() >= TraceFile::kFlushBytes);
  streaming.stream->take(0, batch_of({77}));
  auto has_event = [&] {
    return streaming.folder.content("x.partial.chrome_trace").ends_with("event 77\ntail");
  };
  for (int64_t deadline_ns = soon(); !has_event() && monotonic_ns() < deadline_ns;)
    WriterThread::instance().wait_for(WriterThread::instance().push_always([] {}), soon());
  CHECK(has_event());
}

TEST(formats_that_are_not_wanted_at_the_end_are_removed) {
  Streaming streaming(kBoth);
  streaming.stream->take(0, batch_of({1}));
  streaming.stream->catch_up(soon());
  CHECK_EQ(streaming.folder.entries(), 2);
  StreamEnd end;
  end.formats = {TraceFormat::kPerfetto};
  end.phases = {0};
  CHECK_EQ(streaming.stream->end(std::move(end), soon()).size(), 1);
  CHECK_EQ(streaming.folder.entries(), 1);
  CHECK(streaming.folder.content("x.pftrace") != "");
}

TEST(what_comes_after_the_end_is_dropped) {
  Streaming streaming;
  streaming.end();
  CHECK(streaming.stream->take(0, batch_of({1})));
  streaming.stream->catch_up(soon());
  CHECK_EQ(streaming.folder.content("x.chrome_trace"), "begin 7\nend facts\n");
  CHECK_EQ(streaming.folder.entries(), 1);
}

TEST(a_closed_stream_leaves_nothing) {
  Streaming streaming(kBoth);
  streaming.stream->take(0, batch_of({1}));
  streaming.stream->catch_up(soon());
  streaming.stream->close();
  CHECK_EQ(streaming.folder.entries(), 0);
}

TEST(phases_have_files_of_their_own_numbered_from_the_first_on) {
  Streaming streaming;
  streaming.stream->take(0, batch_of({1}));
  streaming.stream->catch_up(soon());
  streaming.stream->number_files();
  streaming.stream->take(1, batch_of({2}));
  streaming.stream->take(0, batch_of({3})); // a late record
  streaming.stream->catch_up(soon());
  CHECK_EQ(streaming.folder.content("x.part_0.partial.chrome_trace"),
           "begin 7\nevent 1\nevent 3\ntail");
  CHECK_EQ(streaming.end({0, 1}).size(), 2);
  CHECK_EQ(streaming.folder.content("x.part_0.chrome_trace"),
           "begin 7\nevent 1\nevent 3\nend facts\n");
  CHECK_EQ(streaming.folder.content("x.part_1.chrome_trace"), "begin 7\nevent 2\nend facts\n");
  CHECK_EQ(streaming.folder.entries(), 2);
}

TEST(a_phase_that_ended_says_what_was_known_then) {
  Streaming streaming;
  streaming.stream->take(0, batch_of({1}));
  streaming.stream->set_facts(saying("early"));
  streaming.stream->end_phase(0);
  streaming.stream->catch_up(soon());
  CHECK_EQ(streaming.folder.content("x.partial.chrome_trace"), "begin 7\nevent 1\nend early\n");
  streaming.stream->publish_phase(0);
  streaming.stream->catch_up(soon());
  CHECK_EQ(streaming.folder.content("x.chrome_trace"), "begin 7\nevent 1\nend early\n");
}

TEST(a_phase_that_ended_is_locked_until_it_is_published) {
  Streaming streaming(kBoth);
  streaming.stream->take(0, batch_of({1}));
  streaming.stream->number_files();
  streaming.stream->end_phase(0);
  CHECK(streaming.stream->catch_up(soon()));
  CHECK(is_locked(streaming.folder.file("x.part_0.partial.chrome_trace")));
  CHECK(is_locked(streaming.folder.file("x.part_0.partial.pftrace")));
  streaming.end();
  CHECK_EQ(streaming.folder.entries(), 2);
}

TEST(more_phases_than_the_program_has_descriptors_get_their_names) {
  constexpr uint32_t kPhases = 100;
  Streaming streaming(kBoth);
  FewDescriptors few(60);
  streaming.stream->number_files();
  std::set<uint32_t> phases;
  for (uint32_t phase = 0; phase < kPhases; ++phase) {
    streaming.stream->take(phase, batch_of({phase}));
    streaming.stream->end_phase(phase);
    phases.insert(phase);
  }
  CHECK_EQ(streaming.end(phases).size(), 2 * kPhases);
  CHECK_EQ(streaming.folder.entries(), 2 * kPhases);
  for (uint32_t phase = 0; phase < kPhases; ++phase)
    CHECK_EQ(streaming.folder.content("x.part_" + std::to_string(phase) + ".chrome_trace"),
             "begin 7\nevent " + std::to_string(phase) + "\nend \n");
}

TEST(the_events_of_a_cleared_phase_vanish_with_its_file) {
  Streaming streaming;
  streaming.stream->take(0, batch_of({1}, "a"));
  streaming.stream->catch_up(soon());
  streaming.stream->discard_phase(0);
  streaming.stream->catch_up(soon());
  CHECK_EQ(streaming.folder.entries(), 0);
  streaming.stream->take(0, batch_of({2}, "b")); // the phase goes on, empty
  streaming.end();
  CHECK_EQ(streaming.folder.content("x.chrome_trace"), "begin 7\nnode b\nevent 2\nend facts\n");
}

TEST(a_file_that_cannot_be_made_is_an_error_at_the_end) {
  Streaming streaming;
  std::filesystem::remove(streaming.folder.file(""));
  streaming.stream->take(0, batch_of({1}));
  std::string message = refusal(streaming);
  CHECK(message.find("create the folder") != std::string::npos);
}

TEST(a_format_that_grows_too_large_does_not_keep_the_other_from_its_file) {
  ScratchFolder folder;
  pid_t child = fork();
  if (child == 0) {
    rlimit limit{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    int made = 0;
    auto stream = TraceStream::open(plan_for(
        folder.file("x"), kBoth, [&made](TraceFormat format) -> std::unique_ptr<TraceEncoder> {
          ++made;
          struct Silent : TextEncoder {
            void add(const EventBatch &, std::string &) override {}
          };
          if (format == TraceFormat::kPerfetto)
            return std::make_unique<Silent>();
          return std::make_unique<TextEncoder>();
        }));
    EventBatch batch;
    batch.events.resize(1000);
    stream->take(0, std::move(batch));
    stream->catch_up(soon());
    int code = made == 2 && folder.entries() == 2 ? 0 : 1;
    try {
      StreamEnd end;
      end.formats = kBoth;
      end.phases = {0};
      stream->end(std::move(end), soon());
      code = 2;
    } catch (const Error &error) {
      if (std::string(error.what()).find("x.chrome_trace") == std::string::npos)
        code = 3;
    }
    _exit(code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
  CHECK_EQ(folder.content("x.pftrace"), "begin 7\nend \n");
  CHECK_EQ(folder.content("x.partial.chrome_trace"), "begin 7\ntail");
  CHECK_EQ(folder.entries(), 2);
}

TEST(a_writer_that_is_behind_costs_waits_and_then_events_which_are_counted) {
  auto gate = std::make_shared<std::counting_semaphore<>>(0);
  Streaming streaming({TraceFormat::kChrome}, [&](TraceFormat) -> std::unique_ptr<TraceEncoder> {
    return std::make_unique<SlowEncoder>(gate);
  });
  constexpr size_t kEvents = 32768;
  uint64_t taken = 0;
  uint64_t refused = 0;
  while (refused < 2) {
    EventBatch batch;
    batch.events.resize(kEvents);
    (streaming.stream->take(0, std::move(batch)) ? taken : refused) += 1;
  }
  CHECK(taken * kEvents * sizeof(TimelineEvent) <= WriterThread::kMaxQueued_bytes);
  CHECK(taken * kEvents * sizeof(TimelineEvent) > WriterThread::kMaxQueued_bytes / 10 * 9);
  streaming.stream->wait_for_room();
  CHECK_EQ(streaming.stream->counts().waits, 1);
  CHECK(streaming.stream->counts().wait_ns >= WriterThread::kPatience_ns);
  CHECK_EQ(streaming.stream->counts().lost, 2 * kEvents);
  // What later batches count on is taken where events are not.
  EventBatch large = batch_of({}, "needed");
  large.events.resize(kEvents);
  CHECK(!streaming.stream->take(0, std::move(large)));
  gate->release(1000);
  streaming.end();
  CHECK(streaming.folder.content("x.chrome_trace").ends_with("node needed\nend facts\n"));
  CHECK_EQ(streaming.stream->counts().events, taken * kEvents);
}

TEST(two_streams_share_the_thread_and_mix_nothing) {
  Streaming one, other;
  for (int i = 0; i < 100; ++i) {
    one.stream->take(0, batch_of({1}));
    other.stream->take(0, batch_of({2}));
  }
  one.end();
  CHECK(one.folder.content("x.chrome_trace").find("event 2") == std::string::npos);
  other.stream->take(0, batch_of({2}));
  other.end();
  CHECK(other.folder.content("x.chrome_trace").find("event 1") == std::string::npos);
  CHECK_EQ(other.stream->counts().events, 101);
}

TEST(standard_output_is_handed_over_at_the_end) {
  auto stream = TraceStream::open(plan_for("-", {TraceFormat::kChrome}));
  stream->take(0, batch_of({1}));
  StreamEnd end;
  end.formats = {TraceFormat::kChrome};
  end.phases = {0};
  end.hands_over = true;
  std::vector<EndedFile> files = stream->end(std::move(end), soon());
  std::string text(64, '\0');
  text.resize(static_cast<size_t>(read(files.at(0).descriptor, text.data(), text.size())));
  CHECK_EQ(text, "begin 7\nevent 1\nend \n");
  close(files[0].descriptor);
  stream->close();
}

TEST(a_killed_process_leaves_what_was_flushed) {
  ScratchFolder folder;
  pid_t child = fork();
  if (child == 0) {
    auto stream = TraceStream::open(plan_for(folder.file("x"), {TraceFormat::kChrome}));
    stream->take(0, batch_of({1}));
    stream->catch_up(soon());
    raise(SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK_EQ(folder.content("x.partial.chrome_trace"), "begin 7\nevent 1\ntail");
  CHECK_EQ(folder.entries(), 1);
}
