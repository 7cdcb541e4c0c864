// Small numbers for streams, which HIP knows by addresses.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace proton {

/// The null stream is 0; others are numbered from 1 as they are first seen. [any thread] locks
class StreamNumbers {
public:
  uint32_t find(const void *stream) noexcept;

private:
  std::mutex mutex_;
  std::unordered_map<const void *, uint32_t> numbers_;
};

} // namespace proton
