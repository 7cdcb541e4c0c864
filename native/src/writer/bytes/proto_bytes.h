// Appends fields of protocol buffers (protobuf.dev, encoding) to a text.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace proton {

/// Fields of one message. Nested messages are opened and closed in turn.
class ProtoBytes {
public:
  explicit ProtoBytes(std::string &out) : out_(out) {}

  void count(uint32_t field, uint64_t value) {
    tag(field, kVarint);
    varint(value);
  }
  void integer(uint32_t field, int64_t value) { count(field, static_cast<uint64_t>(value)); }
  void fixed64(uint32_t field, uint64_t value) {
    tag(field, kFixed64);
    char bytes[8];
    for (int at = 0; at < 8; ++at)
      bytes[at] = static_cast<char>(value >> (8 * at));
    out_.append(bytes, sizeof bytes);
  }
  void real(uint32_t field, double value) { fixed64(field, std::bit_cast<uint64_t>(value)); }
  void text(uint32_t field, std::string_view value) {
    tag(field, kBytes);
    varint(value.size());
    out_.append(value);
  }
  /// Begins a nested message of `size` bytes, which the caller appends.
  void sized(uint32_t field, size_t size) {
    tag(field, kBytes);
    varint(size);
  }
  /// Appends fields that are encoded already.
  void encoded(std::string_view fields) { out_.append(fields); }
  /// Bytes of a number as `count` writes it, without its field.
  static size_t count_size(uint64_t value) {
    return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7;
  }

  /// Begins a nested message; give the result to `close`.
  size_t open(uint32_t field) {
    tag(field, kBytes);
    out_ += '\0'; // most messages are shorter than 128 bytes
    return out_.size();
  }
  void close(size_t begin) {
    size_t length = out_.size() - begin;
    if (length < 0x80) {
      out_[begin - 1] = static_cast<char>(length);
      return;
    }
    char digits[10];
    size_t size = 0;
    for (; length >= 0x80; length >>= 7)
      digits[size++] = static_cast<char>(length | 0x80);
    digits[size++] = static_cast<char>(length);
    out_[begin - 1] = digits[0];
    out_.insert(begin, digits + 1, size - 1);
  }

private:
  static constexpr uint32_t kVarint = 0;
  static constexpr uint32_t kFixed64 = 1;
  static constexpr uint32_t kBytes = 2;

  void tag(uint32_t field, uint32_t type) { varint(uint64_t{field} << 3 | type); }
  void varint(uint64_t value) {
    char digits[10];
    size_t size = 0;
    for (; value >= 0x80; value >>= 7)
      digits[size++] = static_cast<char>(value | 0x80);
    digits[size++] = static_cast<char>(value);
    out_.append(digits, size);
  }

  std::string &out_;
};

} // namespace proton
