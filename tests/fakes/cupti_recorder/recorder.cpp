// Records libcupti's reports about a running program: libcupti_recorder.so, driven through ctypes
// by record_streams.py. It opens libcupti itself and needs no header of NVIDIA.
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include "call_reader.h"
#include "driver/cupti/cupti_library.h"
#include "driver/cupti/cupti_records.h"
#include "stream_log.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace cupti = proton::cupti;

namespace {

struct Recorder {
  void *library = nullptr;
  void *subscriber = nullptr;
  cupti::function::ActivityGetNextRecord next_record = nullptr;
  cupti::function::ActivityGetNumDroppedRecords dropped = nullptr;
  std::set<int> kinds;
  recording::CallReader reader;
  std::string error;
};

Recorder &recorder() {
  static Recorder *instance = new Recorder; // callbacks may come later
  return *instance;
}

recording::StreamLog &stream_log() {
  static recording::StreamLog *instance = new recording::StreamLog;
  return *instance;
}

template <typename Function> Function symbol(const char *name) {
  return reinterpret_cast<Function>(dlsym(recorder().library, name));
}

/// Runs an entry point and notes a failure. Returns whether it succeeded.
template <typename Function, typename... Arguments>
bool call(const char *name, Arguments... arguments) {
  auto function = symbol<Function>(name);
  const int result = function == nullptr ? -1 : function(arguments...);
  if (result != cupti::kSuccess) {
    recorder().error += std::string(name) + " = " + std::to_string(result) + "; ";
    stream_log().fact("failed", std::string(name) + "=" + std::to_string(result));
  }
  return result == cupti::kSuccess;
}

void on_callback(void *, int domain, uint32_t cbid, const void *data) {
  thread_local bool inside = false; // asking for a stream's id is a driver call of its own
  if (inside || data == nullptr)
    return;
  inside = true;
  try {
    recorder().reader.read(stream_log(), domain, cbid, data);
  } catch (...) {
    stream_log().fact("failed", "callback threw");
  }
  inside = false;
}

void on_buffer_requested(uint8_t **buffer, size_t *bytes, size_t *max_records) {
  constexpr size_t kBytes = 1 << 20;
  *buffer = static_cast<uint8_t *>(std::aligned_alloc(64, kBytes));
  *bytes = *buffer == nullptr ? 0 : kBytes;
  *max_records = 0;
}

/// Replaces pointers to strings in one record by their numbers.
void relocate(std::string &record) {
  const int kind = cupti::read<int>(record.data(), cupti::record_offset::kKind);
  size_t offset = 0;
  if (kind == cupti::kKindKernel || kind == cupti::kKindConcurrentKernel)
    offset = cupti::kernel_offset::kName;
  else if (kind == cupti::kKindDevice)
    offset = cupti::device_offset::kName;
  if (offset == 0 || record.size() < offset + 8)
    return;
  const char *name = cupti::read<const char *>(record.data(), offset);
  const uint64_t number = name == nullptr ? 0 : static_cast<uint64_t>(stream_log().text(name)) + 1;
  std::memcpy(record.data() + offset, &number, sizeof number);
}

void complete(void *context, uint32_t stream_id, uint8_t *buffer, size_t valid) {
  stream::Buffer head;
  head.stream = stream_id;
  size_t dropped = 0;
  if (recorder().dropped != nullptr && recorder().dropped(context, stream_id, &dropped) == 0)
    head.dropped = dropped;
  std::vector<const uint8_t *> starts;
  void *record = nullptr;
  while (valid > 0 && recorder().next_record(buffer, valid, &record) == cupti::kSuccess)
    starts.push_back(static_cast<const uint8_t *>(record));
  std::vector<uint32_t> sizes;
  std::string bytes;
  for (size_t i = 0; i < starts.size(); ++i) {
    const uint8_t *end = i + 1 < starts.size() ? starts[i + 1] : buffer + valid;
    std::string one(reinterpret_cast<const char *>(starts[i]),
                    static_cast<size_t>(end - starts[i]));
    relocate(one);
    sizes.push_back(static_cast<uint32_t>(one.size()));
    bytes += one;
  }
  stream_log().buffer(head, sizes, bytes);
}

void on_buffer_completed(void *context, uint32_t stream_id, uint8_t *buffer, size_t, size_t valid) {
  try {
    complete(context, stream_id, buffer, valid);
  } catch (...) {
    stream_log().fact("failed", "buffer threw");
  }
  std::free(buffer);
}

void enable_callbacks(void *subscriber) {
  auto enable = symbol<cupti::function::EnableDomain>("cuptiEnableDomain");
  if (enable == nullptr)
    return;
  for (int domain :
       {cupti::kDomainDriver, cupti::kDomainRuntime, cupti::kDomainResource, cupti::kDomainNvtx}) {
    const int result = enable(1, subscriber, domain);
    if (result != cupti::kSuccess)
      stream_log().fact("failed", "cuptiEnableDomain(" + std::to_string(domain) +
                                      ")=" + std::to_string(result));
  }
}

void note_version() {
  uint32_t version = 0;
  if (call<cupti::function::GetVersion>("cuptiGetVersion", &version))
    stream_log().fact("cupti_version", std::to_string(version));
  uint64_t before = 0;
  if (call<cupti::function::GetTimestamp>("cuptiGetTimestamp", &before)) {
    stream_log().fact("cupti_timestamp_ns", std::to_string(before));
    stream_log().fact("monotonic_ns", std::to_string(recording::monotonic_ns()));
  }
}

} // namespace

/// Opens `library` and records `kinds` (null-terminated by -1). Returns 0, or 1 with an error text.
EXPORT int recorder_start(const char *library, const int *kinds) noexcept {
  Recorder &self = recorder();
  self.library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (self.library == nullptr) {
    self.error = dlerror();
    return 1;
  }
  stream_log().fact("cupti_path", library);
  note_version();
  self.next_record = symbol<cupti::function::ActivityGetNextRecord>("cuptiActivityGetNextRecord");
  self.dropped =
      symbol<cupti::function::ActivityGetNumDroppedRecords>("cuptiActivityGetNumDroppedRecords");
  self.reader.bind(self.library);
  if (self.next_record == nullptr ||
      !call<cupti::function::Subscribe>("cuptiSubscribe", &self.subscriber, &on_callback,
                                        static_cast<void *>(nullptr)) ||
      !call<cupti::function::ActivityRegisterCallbacks>("cuptiActivityRegisterCallbacks",
                                                        &on_buffer_requested, &on_buffer_completed))
    return 1;
  for (const int *kind = kinds; *kind >= 0; ++kind) {
    if (call<cupti::function::ActivityEnable>("cuptiActivityEnable", *kind))
      self.kinds.insert(*kind);
  }
  enable_callbacks(self.subscriber);
  return 0;
}

/// The failures so far; valid until the next call.
EXPORT const char *recorder_error() noexcept { return recorder().error.c_str(); }

EXPORT void recorder_fact(const char *key, const char *value) noexcept {
  stream_log().fact(key, value);
}

/// Notes on the calling thread that the workload has reached the place of this name.
EXPORT void recorder_mark(const char *text) noexcept {
  stream::Call mark;
  mark.domain = stream::kMarkDomain;
  mark.text = stream_log().text(text);
  stream_log().call(mark);
}

EXPORT void recorder_flush() noexcept {
  call<cupti::function::ActivityFlushAll>("cuptiActivityFlushAll", uint32_t{0});
}

/// Ends the recording and writes it. Returns 0, or 1 with an error text.
EXPORT int recorder_stop(const char *path) noexcept {
  Recorder &self = recorder();
  call<cupti::function::ActivityFlushAll>("cuptiActivityFlushAll", cupti::kFlushForced);
  for (int kind : self.kinds)
    call<cupti::function::ActivityDisable>("cuptiActivityDisable", kind);
  call<cupti::function::Unsubscribe>("cuptiUnsubscribe", self.subscriber);
  for (const auto &[name, count] : self.reader.unrecorded())
    stream_log().fact("unrecorded", name + "=" + std::to_string(count));
  if (!stream_log().write(path)) {
    self.error = std::string("cannot write ") + path;
    return 1;
  }
  return 0;
}
