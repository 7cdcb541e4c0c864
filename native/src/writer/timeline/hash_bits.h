// Hashes that are the same in every process.
#pragma once

#include <cstdint>
#include <string_view>

namespace proton {

constexpr uint64_t mixed_bits(uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
  return bits ^ (bits >> 31);
}

/// FNV-1a.
constexpr uint64_t hash_of_text(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (char character : text)
    hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001B3u;
  return hash;
}

} // namespace proton
