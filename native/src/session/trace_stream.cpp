#include "session/trace_stream.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "calltree/scope_timeline.h"
#include "session/writer_thread.h"
#include "support/clock.h"
#include "support/error.h"
#include "writer/bytes/utf8_text.h"
#include "writer/file/output_file.h"

namespace proton {

const char *trace_format_name(TraceFormat format) noexcept {
  return format == TraceFormat::kChrome ? "chrome_trace" : "perfetto";
}

const char *trace_suffix(TraceFormat format) noexcept {
  return format == TraceFormat::kChrome ? ".chrome_trace" : ".pftrace";
}

TraceFormat parse_trace_format(std::string_view name) {
  for (TraceFormat format : {TraceFormat::kChrome, TraceFormat::kPerfetto})
    if (name == trace_format_name(format))
      return format;
  throw Error(ErrorCode::kUsage, "Unknown format of timelines: " + valid_utf8(name) +
                                     "; choose chrome_trace or perfetto");
}

TraceFile::TraceFile(const std::string &path, TraceFormat format,
                     std::unique_ptr<TraceEncoder> encoder, const TraceFacts &facts)
    : format_(format), encoder_(std::move(encoder)), file_(path) {
  encoder_->spill_to([this](std::string &bytes) {
    file_.append(bytes, encoder_->tail());
    bytes.clear();
  });
  encoder_->begin(facts, pending_);
  flush(); // from now on there is a whole file at any time
}

void TraceFile::add(const EventBatch &batch) {
  if (!encoder_)
    return;
  encoder_->add(batch, pending_);
  is_dirty_ = true;
  if (pending_.size() >= kFlushBytes)
    flush();
}

void TraceFile::flush() {
  if (!encoder_ || !is_dirty_)
    return;
  encoder_->flush(pending_);
  file_.append(pending_, encoder_->tail());
  pending_.clear();
  is_dirty_ = false;
}

void TraceFile::end(const TraceEnd &end) {
  if (!encoder_)
    return;
  encoder_->end(end, pending_);
  encoder_.reset();
  file_.append(pending_, {});
  pending_ = {};
}

namespace {

constexpr int64_t kFlush_ns = 500'000'000;
constexpr const char *kStandardOutput = "-";

WriterThread &writer() { return WriterThread::instance(); }

bool contains(const std::vector<TraceFormat> &formats, TraceFormat format) {
  return std::find(formats.begin(), formats.end(), format) != formats.end();
}

} // namespace

struct TraceStream::Ending {
  StreamEnd end;
  std::vector<EndedFile> files;
};

std::shared_ptr<TraceStream> TraceStream::open(StreamPlan plan) {
  auto stream = std::make_shared<TraceStream>(std::move(plan));
  writer().add(stream);
  return stream;
}

template <typename Work> uint64_t TraceStream::post(Work work, size_t bytes) noexcept {
  try {
    return writer().push_always([self = shared_from_this(), work] { work(*self); }, bytes);
  } catch (const std::exception &error) {
    fail("the timeline ends early: " + std::string(error.what()));
    return 0;
  }
}

bool TraceStream::take(uint32_t number, EventBatch &&batch) noexcept {
  if (is_over_.load())
    return true;
  try {
    size_t bytes = batch_bytes(batch);
    auto held = std::make_shared<EventBatch>(std::move(batch));
    if (writer().push([self = shared_from_this(), number, held] { self->add(number, *held); },
                      bytes) != 0)
      return true;
    lost_ += held->events.size() + held->counters.size() + held->kernel_scopes.size();
    held->events = {};
    held->values = {};
    held->counters = {};
    held->kernel_scopes = {};
    if (!held->is_empty()) // later batches of the phase count on what these bring
      post([number, held](TraceStream &self) { self.add(number, *held); }, batch_bytes(*held));
    return false;
  } catch (const std::exception &error) {
    fail("the timeline ends early: " + std::string(error.what()));
    return true;
  }
}

void TraceStream::end_phase(uint32_t number) noexcept {
  try {
    auto facts = std::make_shared<TraceEnd>(std::exchange(facts_, {}));
    post([number, facts](TraceStream &self) {
      self.end_files(number, *facts);
      // There may be many phases before they get their names.
      self.for_files(self.phase(number), [](TraceFile &file) { file.file().rest(); });
    });
  } catch (const std::exception &) { // its files are ended with the session
  }
}

void TraceStream::wait_for_room() noexcept {
  if (is_over_.load())
    return;
  if (int64_t waited_ns = writer().wait_for_room(); waited_ns != 0) {
    ++waits_;
    wait_ns_ += waited_ns;
  }
}

void TraceStream::number_files() noexcept {
  post([](TraceStream &self) {
    self.are_numbered_ = true;
    for (auto &[number, phase] : self.phases_)
      self.for_files(phase, [&](TraceFile &file) {
        file.file().move_to(self.file_path(number, file.format()));
      });
  });
}

void TraceStream::discard_phase(uint32_t number) noexcept {
  post([number](TraceStream &self) { self.phases_.erase(number); });
}

void TraceStream::publish_phase(uint32_t number) noexcept {
  post([number](TraceStream &self) {
    std::vector<EndedFile> ended;
    self.publish(number, {self.plan_.formats, {}, false}, ended);
    self.phases_.erase(number);
  });
}

bool TraceStream::catch_up(int64_t deadline_ns) {
  return writer().wait_for(post([](TraceStream &self) { self.flush(); }), deadline_ns);
}

std::vector<EndedFile> TraceStream::end(StreamEnd end, int64_t deadline_ns) {
  auto ending = std::make_shared<Ending>(Ending{std::move(end), {}});
  uint64_t job = post([ending](TraceStream &self) {
    if (self.is_over_.exchange(true))
      return; // ended or closed already
    for (uint32_t number : ending->end.phases) {
      self.end_files(number, {}); // where there was no memory to end the phase before
      self.publish(number, ending->end, ending->files);
    }
    self.phases_.clear();
  });
  if (!writer().wait_for(job, deadline_ns))
    throw Error(ErrorCode::kOutput, "the timeline of '" + plan_.path +
                                        "' was not written in time; its partial files may be read");
  std::lock_guard lock(error_mutex_);
  if (!error_.empty())
    throw Error(ErrorCode::kOutput, error_);
  return std::move(ending->files);
}

void TraceStream::close() {
  is_over_.store(true);
  uint64_t job = post([](TraceStream &self) { self.phases_.clear(); });
  writer().wait_for(job, monotonic_ns() + 10 * WriterThread::kPatience_ns);
  writer().remove(this);
}

StreamCounts TraceStream::counts() const {
  return {events_.load(), bytes_.load(), lost_.load(), waits_.load(), wait_ns_.load()};
}

std::string TraceStream::file_path(uint32_t number, TraceFormat format) const {
  if (plan_.path == kStandardOutput)
    return kStandardOutput;
  std::string part = are_numbered_ ? ".part_" + std::to_string(number) : "";
  return plan_.path + part + trace_suffix(format);
}

TraceStream::Phase &TraceStream::phase(uint32_t number) {
  auto [found, is_new] = phases_.try_emplace(number);
  Phase &phase = found->second;
  if (!is_new)
    return phase;
  phase.files.resize(plan_.formats.size());
  for (size_t i = 0; i < phase.files.size(); ++i) {
    TraceFormat format = plan_.formats[i];
    try {
      phase.files[i] = std::make_unique<TraceFile>(file_path(number, format), format,
                                                   plan_.make_encoder(format), plan_.facts);
      bytes_ += phase.files[i]->file().size();
    } catch (const std::exception &error) {
      fail(error.what());
    }
  }
  return phase;
}

template <typename Work> void TraceStream::for_files(Phase &phase, Work work) {
  for (std::unique_ptr<TraceFile> &file : phase.files) {
    if (!file)
      continue;
    uint64_t before = file->file().size();
    try {
      work(*file);
      bytes_ += file->file().size() - before;
    } catch (const NotFlushed &error) {
      fail(error.what(), true);
      file.reset();
    } catch (const std::exception &error) {
      fail(error.what());
      file->file().keep();
      file.reset();
    }
  }
}

void TraceStream::add(uint32_t number, const EventBatch &batch) {
  if (is_over_.load())
    return;
  for_files(phase(number), [&](TraceFile &file) { file.add(batch); });
  events_ += batch.events.size();
}

void TraceStream::flush() {
  for (auto &[number, phase] : phases_)
    for_files(phase, [](TraceFile &file) { file.flush(); });
}

void TraceStream::tick(int64_t now_ns) noexcept {
  if (now_ns - flushed_ns_ < kFlush_ns || is_over_.load())
    return;
  flush();
  flushed_ns_ = now_ns;
}

void TraceStream::end_files(uint32_t number, const TraceEnd &facts) {
  Phase &ended = phase(number);
  if (!ended.is_ended)
    for_files(ended, [&](TraceFile &file) { file.end(facts); });
  ended.is_ended = true;
}

void TraceStream::publish(uint32_t number, const StreamEnd &end, std::vector<EndedFile> &ended) {
  for_files(phase(number), [&](TraceFile &file) {
    if (!contains(end.formats, file.format()))
      return;
    EndedFile whole{number, file.format(), file.file().path(), -1};
    if (end.hands_over && whole.path == kStandardOutput)
      whole.descriptor = file.file().release_descriptor();
    else
      file.file().publish();
    ended.push_back(std::move(whole));
  });
}

void TraceStream::fail(const std::string &message, bool is_written) noexcept {
  try {
    std::lock_guard lock(error_mutex_);
    if (!error_.empty())
      return;
    error_ = message;
    say("warning: " + message +
        (is_written ? "" : "; the recording goes on without this timeline"));
  } catch (const std::exception &) { // no memory for the message
  }
}

size_t batch_bytes(const EventBatch &batch) noexcept {
  size_t bytes =
      sizeof(EventBatch) + batch.nodes.size() * sizeof(EventNode) +
      batch.events.size() * sizeof(TimelineEvent) + batch.values.size() * sizeof(EventValues) +
      batch.threads.size() * sizeof(EventThread) + batch.counters.size() * sizeof(EventCounter);
  for (const EventValues &values : batch.values)
    for (const auto &[name, text] : values.values)
      bytes += sizeof(name) + sizeof(text) + text.size();
  for (const EventThread &thread : batch.threads)
    bytes += thread.name.size();
  for (const auto &launch : batch.kernel_scopes)
    bytes += sizeof(TimelineLaunch) + launch->programs.size() * sizeof(TimelineProgram) +
             launch->instances.size() * sizeof(TimelineScope);
  return bytes;
}

} // namespace proton
