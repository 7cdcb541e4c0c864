#include "collector/hip/stream_numbers.h"

namespace proton {

uint32_t StreamNumbers::find(const void *stream) noexcept {
  if (!stream)
    return 0;
  try {
    std::lock_guard lock(mutex_);
    auto next = static_cast<uint32_t>(numbers_.size()) + 1;
    return numbers_.try_emplace(stream, next).first->second;
  } catch (...) { // no memory: it is shown with the null stream
    return 0;
  }
}

} // namespace proton
