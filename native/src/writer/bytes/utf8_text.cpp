#include "writer/bytes/utf8_text.h"

#include <cstddef>
#include <cstdint>

namespace proton {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

uint8_t byte_at(std::string_view text, size_t position) {
  return static_cast<uint8_t>(text[position]);
}

bool continues(std::string_view text, size_t position) {
  return position < text.size() && (byte_at(text, position) & 0xC0) == 0x80;
}

// Length of the valid sequence at `position`; 0 if there is none. The bounds on the second byte are
// those of Unicode 15, table 3-7: no overlong form, surrogate or value past 10FFFF.
size_t sequence_length(std::string_view text, size_t position) {
  uint8_t lead = byte_at(text, position);
  if (lead < 0x80)
    return 1;
  if (lead < 0xC2 || lead > 0xF4 || !continues(text, position + 1))
    return 0;
  uint8_t second = byte_at(text, position + 1);
  if (lead < 0xE0)
    return 2;
  if (lead < 0xF0) {
    bool is_allowed = !(lead == 0xE0 && second < 0xA0) && !(lead == 0xED && second > 0x9F);
    return is_allowed && continues(text, position + 2) ? 3 : 0;
  }
  bool is_allowed = !(lead == 0xF0 && second < 0x90) && !(lead == 0xF4 && second > 0x8F);
  return is_allowed && continues(text, position + 2) && continues(text, position + 3) ? 4 : 0;
}

size_t valid_prefix(std::string_view text) {
  size_t position = 0;
  while (position < text.size()) {
    size_t length = sequence_length(text, position);
    if (length == 0)
      break;
    position += length;
  }
  return position;
}

bool is_surrogate(std::string_view text, size_t position) {
  return byte_at(text, position) == 0xED && continues(text, position + 1) &&
         continues(text, position + 2);
}

void append_hex(std::string &out, uint32_t value, int digits) {
  for (int digit = digits - 1; digit >= 0; --digit)
    out += kHexDigits[(value >> (4 * digit)) & 0xF];
}

// Appends the readable form of the text at `position`; returns how many bytes it covers.
size_t append_escape(std::string &out, std::string_view text, size_t position) {
  if (!is_surrogate(text, position)) {
    out += "\\x";
    append_hex(out, byte_at(text, position), 2);
    return 1;
  }
  uint32_t second = byte_at(text, position + 1) & 0x3Fu;
  uint32_t third = byte_at(text, position + 2) & 0x3Fu;
  out += "\\u";
  append_hex(out, 0xD000u | (second << 6) | third, 4);
  return 3;
}

} // namespace

std::string_view valid_utf8(std::string_view bytes, std::string &scratch) {
  size_t prefix = valid_prefix(bytes);
  if (prefix == bytes.size())
    return bytes;
  scratch.clear();
  while (!bytes.empty()) {
    scratch.append(bytes.substr(0, prefix));
    bytes.remove_prefix(prefix);
    if (!bytes.empty())
      bytes.remove_prefix(append_escape(scratch, bytes, 0));
    prefix = valid_prefix(bytes);
  }
  return scratch;
}

std::string valid_utf8(std::string_view bytes) {
  std::string scratch;
  return std::string(valid_utf8(bytes, scratch));
}

} // namespace proton
