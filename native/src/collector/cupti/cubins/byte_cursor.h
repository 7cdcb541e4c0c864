// Reads bytes that another tool wrote.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace proton {

/// Little-endian numbers one after another. Past the end everything is 0, and `is_sound` false.
class ByteCursor {
public:
  explicit ByteCursor(std::span<const char> bytes) : bytes_(bytes) {}

  bool is_sound() const { return is_sound_; }
  bool is_at_end() const { return at_ >= bytes_.size(); }
  size_t at() const { return at_; }

  void seek(size_t at) {
    is_sound_ = is_sound_ && at <= bytes_.size();
    at_ = is_sound_ ? at : bytes_.size();
  }
  void skip(size_t count) { seek(count > bytes_.size() - at_ ? bytes_.size() + 1 : at_ + count); }

  template <typename Number> Number number() {
    Number found{};
    if (sizeof(Number) > bytes_.size() - at_) {
      skip(sizeof(Number));
      return found;
    }
    std::memcpy(&found, bytes_.data() + at_, sizeof(Number));
    at_ += sizeof(Number);
    return found;
  }
  uint8_t byte() { return number<uint8_t>(); }

  /// DWARF's LEB128; bits above 64 are left out.
  uint64_t unsigned_leb() { return leb().value; }
  int64_t signed_leb() {
    auto [value, bits, last] = leb();
    if (bits < 64 && (last & 0x40) != 0)
      value |= ~uint64_t{0} << bits;
    return static_cast<int64_t>(value);
  }

  /// Up to a NUL, which is read as well.
  std::string_view text() {
    std::span<const char> rest = bytes_.subspan(at_);
    const void *end = rest.empty() ? nullptr : std::memchr(rest.data(), 0, rest.size());
    if (!end) {
      skip(rest.size() + 1);
      return {};
    }
    auto size = static_cast<size_t>(static_cast<const char *>(end) - rest.data());
    at_ += size + 1;
    return {rest.data(), size};
  }

private:
  struct Leb {
    uint64_t value = 0;
    unsigned bits = 0;
    uint8_t last = 0;
  };
  Leb leb() {
    Leb found;
    do {
      found.last = byte();
      if (found.bits < 64)
        found.value |= uint64_t{found.last & 0x7fu} << found.bits;
      found.bits += 7;
    } while ((found.last & 0x80) != 0 && is_sound_);
    return found;
  }

  std::span<const char> bytes_;
  size_t at_ = 0;
  bool is_sound_ = true;
};

} // namespace proton
