#include "collector/replay/recording.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "support/error.h"

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

std::string encode_recording(const Recording &recording) {
  std::string bytes(kMagic, sizeof kMagic);
  auto append = [&](const void *value, size_t size) {
    bytes.append(static_cast<const char *>(value), size);
  };
  auto strings = static_cast<uint32_t>(recording.strings.size());
  auto events = static_cast<uint64_t>(recording.events.size());
  append(&kRecordingVersion, sizeof kRecordingVersion);
  append(&strings, sizeof strings);
  append(&events, sizeof events);
  for (const std::string &text : recording.strings) {
    auto size = static_cast<uint32_t>(text.size());
    append(&size, sizeof size);
    bytes += text;
  }
  for (const RecordedEvent &event : recording.events)
    append(&event, sizeof event);
  return bytes;
}

} // namespace proton
