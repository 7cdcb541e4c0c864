#include "collector/replay/replay_collector.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>
#include <unordered_map>

#include "context/thread/host_range.h"
#include "support/error.h"
#include "support/fork_locks.h"

namespace proton {
namespace {

constexpr char kMagic[8] = {'P', 'B', 'R', 'E', 'C', 'O', 'R', 'D'};

/// Reads values from bytes and says where the bytes ended too early.
class Reader {
public:
  Reader(const std::string &path, const std::string &bytes) : path_(path), bytes_(bytes) {}

  void read(void *target, size_t size, const char *what) {
    if (size > bytes_.size() - at_)
      fail(std::string("it ends inside ") + what);
    std::memcpy(target, bytes_.data() + at_, size);
    at_ += size;
  }
  template <typename T> T value(const char *what) {
    T result{};
    read(&result, sizeof result, what);
    return result;
  }
  size_t left() const { return bytes_.size() - at_; }
  [[noreturn]] void fail(const std::string &why) const {
    throw Error(ErrorCode::kFormat, "recording '" + path_ + "' is not readable at byte " +
                                        std::to_string(at_) + ": " + why +
                                        "; record it again or name another file");
  }

private:
  const std::string &path_;
  const std::string &bytes_;
  size_t at_ = 0;
};

void check_event(const RecordedEvent &event, size_t strings, const Reader &reader) {
  auto kind = static_cast<uint32_t>(event.kind);
  if (kind < 1 || kind > static_cast<uint32_t>(RecordedKind::kDropped))
    reader.fail("unknown event kind " + std::to_string(kind));
  for (uint32_t index : {event.name, event.device_kind, event.signature})
    if (index != kNoText && index >= strings)
      reader.fail("text number " + std::to_string(index) + " of " + std::to_string(strings));
  bool needs_name = event.kind == RecordedKind::kScopeEnter || event.kind == RecordedKind::kDropped;
  if (needs_name && event.name == kNoText)
    reader.fail("an event without its name");
}

std::string content_of(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes;
  try {
    if (file) {
      bytes.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
      return bytes;
    }
  } catch (const std::ios_base::failure &) { // opens, but is not to be read: a folder
  }
  throw Error(ErrorCode::kFormat, "cannot read recording '" + path + "': " + std::strerror(errno) +
                                      "; give an existing file by mode 'replay:file=PATH'");
}

} // namespace

Recording read_recording(const std::string &path) {
  std::string bytes = content_of(path);
  Reader reader(path, bytes);
  char magic[sizeof kMagic];
  reader.read(magic, sizeof magic, "the header");
  if (std::memcmp(magic, kMagic, sizeof magic) != 0)
    reader.fail("it does not begin with PBRECORD");
  auto version = reader.value<uint32_t>("the header");
  if (version != kRecordingVersion)
    reader.fail("version " + std::to_string(version) + ", this release reads version 1");
  auto strings = reader.value<uint32_t>("the header");
  auto events = reader.value<uint64_t>("the header");
  // Declared sizes are checked against the file's size before anything is allocated.
  if (strings > reader.left() / sizeof(uint32_t) || events > reader.left() / sizeof(RecordedEvent))
    reader.fail("it declares more than it holds");
  Recording recording;
  recording.strings.reserve(strings);
  for (uint32_t i = 0; i < strings; ++i) {
    auto size = reader.value<uint32_t>("a text");
    if (size > reader.left())
      reader.fail("a text longer than the file");
    std::string text(size, '\0');
    reader.read(text.data(), size, "a text");
    recording.strings.push_back(std::move(text));
  }
  recording.events.reserve(events);
  for (uint64_t i = 0; i < events; ++i) {
    auto event = reader.value<RecordedEvent>("an event");
    check_event(event, recording.strings.size(), reader);
    recording.events.push_back(event);
  }
  if (reader.left() != 0)
    reader.fail("there are " + std::to_string(reader.left()) + " bytes after the last event");
  return recording;
}

namespace {

VariantRecord variant_of(const Recording &recording, const RecordedEvent &event) {
  VariantRecord variant;
  variant.code_hash = event.code_hash;
  std::copy(std::begin(event.grid), std::end(event.grid), std::begin(variant.grid));
  std::copy(std::begin(event.block), std::end(event.block), std::begin(variant.block));
  variant.shared_bytes = event.shared_bytes;
  variant.signature = recording.text(event.signature);
  return variant;
}

/// Scopes of the recording on the calling thread; open ones end with the replay.
class ReplayedScopes {
public:
  ReplayedScopes() = default;
  ~ReplayedScopes() {
    while (open_ != 0)
      exit();
  }
  ReplayedScopes(const ReplayedScopes &) = delete;
  ReplayedScopes &operator=(const ReplayedScopes &) = delete;

  void enter(const std::string &name) {
    SessionState now = session_state();
    if (!now.active)
      return;
    open_scope(hashed(name), FrameKind::kScope, now);
    ++open_;
  }
  void exit() noexcept {
    if (open_ == 0)
      return;
    close_top(session_state());
    --open_;
  }

private:
  uint32_t open_ = 0;
};

} // namespace

ReplayCollector::ReplayCollector(RecordSink &sink, const std::string &path, bool manual)
    : sink_(sink), recording_(read_recording(path)), manual_(manual) {
  guard_across_fork(mutex_, LockRank::kReplay);
}

ReplayCollector::~ReplayCollector() { forget_across_fork(LockRank::kReplay); }

void ReplayCollector::start() {
  std::lock_guard lock(mutex_);
  started_ = true;
  played_ = false;
  next_ = 0;
  pending_.clear();
}

void ReplayCollector::stop() {
  flush();
  std::lock_guard lock(mutex_);
  started_ = false;
}

void ReplayCollector::flush() {
  std::vector<PendingKernel> kernels;
  {
    std::lock_guard lock(mutex_);
    if (!started_)
      return;
    if (!manual_ && !played_) {
      played_ = true;
      next_ = recording_.events.size();
    } else {
      kernels.swap(pending_);
      if (kernels.empty())
        return;
    }
  }
  if (kernels.empty())
    play_all();
  else
    std::thread([&] { deliver(kernels); }).join();
}

void ReplayCollector::play_all() {
  std::unordered_map<uint64_t, uint64_t> correlations; // recorded -> of this replay
  ReplayedScopes scopes;
  std::vector<PendingKernel> kernels;
  for (size_t i = 0; i < recording_.events.size(); ++i) {
    const RecordedEvent &event = recording_.events[i];
    auto known = correlations.find(event.correlation_id);
    uint64_t id = known == correlations.end() ? 0 : known->second;
    switch (event.kind) {
    case RecordedKind::kScopeEnter:
      scopes.enter(recording_.strings[event.name]);
      break;
    case RecordedKind::kScopeExit:
      scopes.exit();
      break;
    case RecordedKind::kLaunch:
      id = correlations[event.correlation_id] = next_correlation_id();
      sink_.launched_at(id, event.start_ns);
      break;
    case RecordedKind::kKernel:
      kernels.push_back({i, id});
      break;
    case RecordedKind::kFailed:
      sink_.failed(id);
      break;
    case RecordedKind::kDropped:
      sink_.dropped({recording_.text(event.name), event.count});
      break;
    }
  }
  std::thread([&] { deliver(kernels); }).join();
}

void ReplayCollector::deliver(const std::vector<PendingKernel> &kernels) const {
  std::vector<KernelRecord> records;
  std::vector<VariantRecord> variants;
  records.reserve(kernels.size());
  variants.reserve(kernels.size()); // records point into it
  for (const PendingKernel &kernel : kernels) {
    const RecordedEvent &event = recording_.events[kernel.event];
    KernelRecord record;
    record.correlation_id = kernel.correlation_id;
    record.start_ns = event.start_ns;
    record.end_ns = event.end_ns;
    record.name = recording_.text(event.name);
    if (event.device_kind != kNoText)
      record.device_kind = recording_.text(event.device_kind);
    record.device_index = event.device_index;
    record.stream = event.stream;
    if (event.has_variant != 0) {
      variants.push_back(variant_of(recording_, event));
      record.variant = &variants.back();
    }
    records.push_back(record);
  }
  sink_.complete(records);
}

uint32_t ReplayCollector::launch(uint32_t count) {
  uint32_t launched = 0;
  for (; launched < count; ++launched) {
    size_t found = 0;
    {
      std::lock_guard lock(mutex_);
      const auto &events = recording_.events;
      while (next_ < events.size() && events[next_].kind != RecordedKind::kLaunch)
        ++next_;
      if (!started_ || next_ == events.size())
        break;
      found = next_++;
    }
    uint64_t id = next_correlation_id();
    sink_.launched_at(id, recording_.events[found].start_ns);
    finish_launch(found, id);
  }
  return launched;
}

void ReplayCollector::finish_launch(size_t launch, uint64_t correlation_id) {
  uint64_t recorded_id = recording_.events[launch].correlation_id;
  bool is_failed = false;
  {
    std::lock_guard lock(mutex_);
    for (size_t i = launch + 1; i < recording_.events.size(); ++i) {
      const RecordedEvent &event = recording_.events[i];
      if (event.correlation_id != recorded_id)
        continue;
      if (event.kind == RecordedKind::kKernel)
        pending_.push_back({i, correlation_id});
      if (event.kind == RecordedKind::kFailed)
        is_failed = true;
      if (event.kind == RecordedKind::kLaunch)
        break; // the id was used again
    }
  }
  if (is_failed)
    sink_.failed(correlation_id);
}

size_t ReplayCollector::remaining() {
  std::lock_guard lock(mutex_);
  auto from = recording_.events.begin() + static_cast<std::ptrdiff_t>(next_);
  return static_cast<size_t>(std::count_if(from, recording_.events.end(), [](const auto &event) {
    return event.kind == RecordedKind::kLaunch;
  }));
}

} // namespace proton
