// JSON values at the end of a string.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace proton {

/// Any bytes, in the readable form of `valid_utf8`.
void append_quoted(std::string &out, std::string_view bytes);
/// Base64 (RFC 4648), without quotes.
void append_base64(std::string &out, std::string_view bytes);
void append_json_number(std::string &out, int64_t number);
/// The shortest text that reads back equal; whole numbers with ".0", NaN and infinities as null.
void append_json_number(std::string &out, double number);

} // namespace proton
