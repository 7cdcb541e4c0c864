#include "writer/bytes/json_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "writer/bytes/utf8_text.h"

namespace proton {
namespace {

template <typename Number> void append_number(std::string &out, Number number) {
  char digits[32];
  auto [end, status] = std::to_chars(digits, digits + sizeof digits, number);
  static_cast<void>(status); // 32 characters hold every int64 and every shortest double
  out.append(digits, end);
}

// Two-character escapes of JSON; 0 for characters that have none.
char short_escape(char character) {
  switch (character) {
  case '"':
  case '\\':
    return character;
  case '\b':
    return 'b';
  case '\f':
    return 'f';
  case '\n':
    return 'n';
  case '\r':
    return 'r';
  case '\t':
    return 't';
  default:
    return 0;
  }
}

void append_escaped(std::string &out, char character) {
  constexpr char kHexDigits[] = "0123456789abcdef";
  out += '\\';
  if (char letter = short_escape(character); letter != 0) {
    out += letter;
    return;
  }
  auto code = static_cast<unsigned char>(character);
  out += "u00";
  out += kHexDigits[code >> 4];
  out += kHexDigits[code & 0xF];
}

} // namespace

void append_quoted(std::string &out, std::string_view bytes) {
  std::string scratch;
  std::string_view text = valid_utf8(bytes, scratch);
  out += '"';
  size_t plain = 0; // start of the run that needs no escape
  for (size_t position = 0; position < text.size(); ++position) {
    char character = text[position];
    if (static_cast<unsigned char>(character) >= 0x20 && short_escape(character) == 0)
      continue;
    out.append(text.substr(plain, position - plain));
    append_escaped(out, character);
    plain = position + 1;
  }
  out.append(text.substr(plain));
  out += '"';
}

void append_base64(std::string &out, std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  out.reserve(out.size() + (bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    size_t count = std::min<size_t>(3, bytes.size() - at);
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i)
      group = group << 8 | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (size_t i = 0; i < 4; ++i)
      out += i <= count ? kDigits[group >> (18 - 6 * i) & 63] : '=';
  }
}

void append_json_number(std::string &out, int64_t number) { append_number(out, number); }

void append_json_number(std::string &out, double number) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  size_t start = out.size();
  append_number(out, number);
  // A whole double keeps its type in every reader: 3.0, not 3.
  if (out.find_first_of(".e", start) == std::string::npos)
    out += ".0";
}

} // namespace proton
