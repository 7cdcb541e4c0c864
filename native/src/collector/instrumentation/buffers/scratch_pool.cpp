#include "collector/instrumentation/buffers/scratch_pool.h"

#include <bit>

#include "support/error.h"

namespace proton {
namespace {

constexpr size_t kLeastScratchBytes = size_t{64} << 10;
constexpr size_t kMostRounded = size_t{256} << 20; // beyond, half of it might be too much to waste

const std::string kScratchPurpose = "taking memory of the device for records of kernels";
const std::string kOrderPurpose = "ordering a launch and the copy of a timeline";

size_t rounded(size_t bytes) {
  if (bytes > kMostRounded)
    return bytes;
  return bytes < kLeastScratchBytes ? kLeastScratchBytes : std::bit_ceil(bytes);
}

} // namespace

/// The smallest buffer that the copy stream has not; among buffers that it has, the one used first.
ScratchBuffer *ScratchPool::find(size_t bytes, bool is_copied) const {
  ScratchBuffer *found = nullptr;
  for (const auto &buffer : buffers_) {
    bool fits = !buffer->is_taken && !buffer->is_stuck && buffer->is_copied == is_copied &&
                buffer->bytes >= bytes;
    if (fits && (!found || (is_copied ? buffer->use < found->use : buffer->bytes < found->bytes)))
      found = buffer.get();
  }
  return found;
}

/// Whether another may be kept beside those that the copy stream has.
bool ScratchPool::has_room(size_t bytes) const {
  size_t count = 0, all = rounded(bytes);
  for (const auto &buffer : buffers_)
    if (buffer->is_copied && !buffer->is_outgrown) {
      ++count;
      all += buffer->bytes;
    }
  return count < kMostCopied && all <= kMostCopiedBytes;
}

ScratchBuffer &ScratchPool::add(size_t bytes, bool copies) {
  auto made = std::make_unique<ScratchBuffer>();
  made->bytes = rounded(bytes);
  made->address = context_.allocate(made->bytes, kScratchPurpose);
  try {
    if (copies)
      made->event = context_.make_event(kScratchPurpose);
    buffers_.push_back(nullptr);
  } catch (...) {
    free(*made);
    throw;
  }
  // Smaller free buffers have served: launches grow, and their sum stays below the new one.
  for (auto &buffer : buffers_)
    if (buffer)
      buffer->is_outgrown |= !buffer->is_taken && buffer->bytes < made->bytes;
  buffers_.back() = std::move(made);
  return *buffers_.back();
}

/// Null without memory: the stream can wait instead.
ScratchBuffer *ScratchPool::try_add(size_t bytes) {
  try {
    return &add(bytes, true);
  } catch (const Error &) {
    return nullptr;
  }
}

/// Made now, because the first launch waits for the driver anyway and a later one should not.
void ScratchPool::add_spares(size_t bytes) {
  for (size_t count = 2; count <= kMostCopied && count * rounded(bytes) <= kSpareBytes; ++count)
    if (!try_add(bytes))
      return;
}

/// A buffer that the copy stream is done with, a new one, or one that the stream waits for; null if
/// none is large enough.
ScratchBuffer *ScratchPool::take_copied(size_t bytes, void *stream) {
  ScratchBuffer *oldest = find(bytes, true);
  if (!oldest)
    return nullptr;
  // The copy stream works in order: while the oldest is not over, no other is.
  if (!context_.is_over(oldest->event)) {
    if (ScratchBuffer *added = has_room(bytes) ? try_add(bytes) : nullptr)
      return added;
    const CudaWork &work = context_.work();
    work.check(work.functions().stream_wait_event(stream, oldest->event, 0), "cuStreamWaitEvent",
               kOrderPurpose);
  }
  oldest->is_copied = false;
  return oldest;
}

ScratchBuffer &ScratchPool::take(size_t bytes, void *stream, bool copies) {
  ScratchBuffer *found = find(bytes, false);
  if (!found)
    found = take_copied(bytes, stream);
  if (!found) {
    found = &add(bytes, copies);
    if (copies)
      add_spares(bytes);
  }
  found->is_taken = true;
  found->is_outgrown = false;
  return *found;
}

void ScratchPool::hand_over(ScratchBuffer &buffer, void *stream) {
  const CudaWork &work = context_.work();
  void *copies = context_.copy_stream();
  work.check(work.functions().event_record(buffer.event, stream), "cuEventRecord", kOrderPurpose);
  work.check(work.functions().stream_wait_event(copies, buffer.event, 0), "cuStreamWaitEvent",
             kOrderPurpose);
  buffer.is_copied = true;
  buffer.use = ++uses_;
}

void ScratchPool::give_back(ScratchBuffer &buffer) noexcept {
  buffer.is_taken = false;
  if (!buffer.is_copied)
    return;
  const CudaWorkFunctions &functions = context_.work().functions();
  void *copies = context_.made_copy_stream();
  if (functions.event_record(buffer.event, copies) == cuda::kSuccess)
    return;
  RelaxedCapture relaxed(functions);
  buffer.is_stuck = functions.stream_synchronize(copies) != cuda::kSuccess;
  buffer.is_copied = buffer.is_stuck;
}

void ScratchPool::free(ScratchBuffer &buffer) const noexcept {
  context_.free(buffer.address);
  if (buffer.event)
    context_.work().functions().event_destroy(buffer.event);
}

size_t ScratchPool::bytes() const {
  size_t all = 0;
  for (const auto &buffer : buffers_)
    all += buffer->bytes;
  return all;
}

} // namespace proton
