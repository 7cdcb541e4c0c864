#include "collector/replay/replay_collector.h"

#include "check.h"
#include "collector/replay/recording_bytes.h"
#include "scratch_folder.h"
#include "support/error.h"

using namespace proton;

namespace {

Recording sample() {
  Recording recording;
  recording.strings = {"scope\n", "kernel", "CUDA"};
  RecordedEvent scope, kernel;
  scope.kind = RecordedKind::kScopeEnter;
  scope.name = 0;
  kernel.kind = RecordedKind::kKernel;
  kernel.name = 1;
  kernel.device_kind = 2;
  kernel.end_ns = 55;
  recording.events = {scope, kernel};
  return recording;
}

// The error message for the bytes; empty if they are read.
std::string refusal(const std::string &bytes) {
  ScratchFolder folder;
  std::ofstream(folder.file("r"), std::ios::binary) << bytes;
  try {
    read_recording(folder.file("r"));
  } catch (const Error &error) {
    CHECK(error.code() == ErrorCode::kFormat);
    return error.what();
  }
  return "";
}

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST(a_recording_reads_back_as_written) {
  ScratchFolder folder;
  std::ofstream(folder.file("r"), std::ios::binary) << encode_recording(sample());
  Recording read = read_recording(folder.file("r"));
  CHECK((read.strings == sample().strings));
  CHECK_EQ(read.events.size(), 2);
  CHECK_EQ(read.events[1].end_ns, 55);
  CHECK_EQ(std::string(read.text(read.events[1].device_kind)), "CUDA");
  CHECK(read.text(kNoText) == nullptr);
}

TEST(a_recording_cut_anywhere_is_refused) {
  std::string whole = encode_recording(sample());
  size_t refused = 0;
  for (size_t size = 0; size < whole.size(); ++size)
    refused += refusal(whole.substr(0, size)).empty() ? 0 : 1;
  CHECK_EQ(refused, whole.size());
}

TEST(bytes_after_the_last_event_are_refused) {
  CHECK(contains(refusal(encode_recording(sample()) + "x"), "after the last event"));
}

TEST(a_huge_declared_count_is_refused_before_anything_is_allocated) {
  std::string bytes = encode_recording(sample());
  bytes.replace(16, 8, std::string(8, '\xFF'));
  CHECK(contains(refusal(bytes), "declares more than it holds"));
}

TEST(text_numbers_past_the_table_are_refused) {
  Recording recording = sample();
  recording.events[1].name = 99;
  CHECK(contains(refusal(encode_recording(recording)), "text number 99"));
}

TEST(unknown_kinds_of_events_are_refused) {
  Recording recording = sample();
  recording.events[0].kind = static_cast<RecordedKind>(77);
  CHECK(contains(refusal(encode_recording(recording)), "unknown event kind 77"));
}

TEST(another_version_is_named) {
  std::string bytes = encode_recording(sample());
  bytes[8] = 9;
  CHECK(contains(refusal(bytes), "version 9"));
}

TEST(a_file_of_something_else_is_refused) {
  CHECK(contains(refusal("#!/bin/sh and more"), "PBRECORD"));
}

TEST(a_missing_file_is_named) {
  std::string message;
  try {
    read_recording("/nonexistent/recording");
  } catch (const Error &error) {
    message = error.what();
  }
  CHECK(contains(message, "/nonexistent/recording") && contains(message, "No such file"));
}
