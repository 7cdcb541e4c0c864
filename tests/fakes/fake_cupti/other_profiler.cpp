// Another profiler of the same process, such as Kineto: it gives CUPTI its own buffers, whether or
// not another profiler did so before, and switches kernels off when it ends.
#include <cstdlib>

#include "library.h"

using namespace fake;

namespace {

constexpr size_t kBytes = size_t{1} << 16;

std::atomic<uint64_t> own_buffers{0};
std::atomic<uint64_t> foreign_buffers{0};
std::atomic<uint64_t> own_records{0};
std::mutex buffers_mutex;
std::vector<uint8_t *> &buffers =
    *new std::vector<uint8_t *>; // what is in it is still known at exit

void requested(uint8_t **buffer, size_t *bytes, size_t *most_records) {
  *buffer = static_cast<uint8_t *>(std::aligned_alloc(8, kBytes));
  *bytes = kBytes;
  *most_records = 0;
  std::lock_guard lock(buffers_mutex);
  buffers.push_back(*buffer);
}

void completed(void *, uint32_t, uint8_t *buffer, size_t, size_t valid) {
  own_records += valid / library().record_bytes[cupti::kKindConcurrentKernel];
  std::lock_guard lock(buffers_mutex);
  for (uint8_t *&each : buffers) {
    if (each != buffer)
      continue;
    each = buffers.back();
    buffers.pop_back();
    std::free(buffer);
    ++own_buffers;
    return;
  }
  ++foreign_buffers;
}

} // namespace

FAKE_EXPORT void fake_cupti_other_profiler(int is_on) {
  if (is_on != 0)
    library().delivery.register_callbacks(requested, completed);
  else
    library().delivery.flush();
  library().kinds[cupti::kKindConcurrentKernel] = is_on != 0;
}

FAKE_EXPORT int fake_cupti_other_client(const char *name) {
  Library &self = library();
  if (name != nullptr && self.is_subscribed && !self.is_shared)
    return cupti::kErrorMultipleSubscribers;
  fake_cupti_other_subscriber(name);
  self.other_is_shared = name != nullptr;
  self.other_kinds[cupti::kKindConcurrentKernel] = name != nullptr;
  if (name != nullptr)
    self.other_delivery.register_callbacks(requested, completed);
  else
    self.other_delivery.flush();
  return cupti::kSuccess;
}

FAKE_EXPORT uint64_t fake_cupti_other_client_records() { return own_records; }
FAKE_EXPORT uint64_t fake_cupti_other_profiler_buffers() { return own_buffers; }
FAKE_EXPORT uint64_t fake_cupti_other_profiler_foreign_buffers() { return foreign_buffers; }
