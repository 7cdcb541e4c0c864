#include "collector/instrumentation/scratch_pool.h"

#include <bit>

#include "support/error.h"

namespace proton {
namespace {

constexpr size_t kLeastBytes = size_t{64} << 10;
constexpr size_t kMostRounded = size_t{256} << 20; // beyond, half of it might be too much to waste

const std::string kPurpose = "taking memory of the device for records of kernels";

} // namespace

ScratchBuffer &ScratchPool::take(size_t bytes) {
  ScratchBuffer *found = nullptr;
  for (auto &buffer : buffers_)
    if (!buffer->is_taken && buffer->bytes >= bytes && (!found || buffer->bytes < found->bytes))
      found = buffer.get();
  if (!found) {
    auto made = std::make_unique<ScratchBuffer>();
    size_t rounded = bytes < kLeastBytes ? kLeastBytes : std::bit_ceil(bytes);
    made->bytes = bytes <= kMostRounded ? rounded : bytes;
    made->address = context_.allocate(made->bytes, kPurpose);
    // Smaller free ones have served: launches grow, and their sum stays below the new one.
    for (auto &buffer : buffers_)
      buffer->is_outgrown |= !buffer->is_taken;
    found = buffers_.emplace_back(std::move(made)).get();
  }
  found->is_taken = true;
  found->is_outgrown = false;
  return *found;
}

size_t ScratchPool::bytes() const {
  size_t all = 0;
  for (const auto &buffer : buffers_)
    all += buffer->bytes;
  return all;
}

} // namespace proton
