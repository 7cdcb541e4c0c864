// The bytes of a recording's file, as replay_collector.h describes them.
#pragma once

#include <cstdint>
#include <string>

#include "collector/replay/replay_collector.h"

namespace proton {

inline std::string encode_recording(const Recording &recording) {
  std::string bytes = "PBRECORD";
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
