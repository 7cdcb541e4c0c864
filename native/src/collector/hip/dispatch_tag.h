// What a dispatch carries through AMD's library to its record.
#pragma once

#include <cstdint>

namespace proton {

/// Taken on the launching thread while the dispatch is made; 64 bits, and 0 is not a tag.
struct DispatchTag {
  uint32_t correlation = 0; ///< low half of the launch's id
  bool is_graph = false;
  uint32_t number = 0; ///< ordinal of the dispatch in the launch of a graph; else of the stream

  uint64_t pack() const noexcept {
    return uint64_t{is_graph} << 63 | uint64_t{number & kMostNumber} << 32 | correlation;
  }
  static DispatchTag unpack(uint64_t packed) noexcept {
    return {static_cast<uint32_t>(packed), packed >> 63 != 0,
            static_cast<uint32_t>(packed >> 32) & kMostNumber};
  }

private:
  static constexpr uint32_t kMostNumber = 0x7fffffff;
};

} // namespace proton
