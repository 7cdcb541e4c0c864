#include "writer/bytes/msgpack_bytes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "support/error.h"

namespace proton {
namespace {

// Numbers of one kind have four codes in a row, for 1, 2, 4 and 8 bytes: which of them.
unsigned width_of(uint64_t value) {
  return value <= 0xFF ? 0 : value <= 0xFFFF ? 1 : value <= 0xFFFFFFFF ? 2 : 3;
}

} // namespace

// The code of one byte, and as many bytes as the width says, the highest first.
void MsgpackBytes::sized(unsigned code, uint64_t value, unsigned width) {
  byte(code + width);
  for (int shift = (8 << width) - 8; shift >= 0; shift -= 8)
    byte(static_cast<unsigned>((value >> shift) & 0xFF));
}

void MsgpackBytes::count(uint64_t value) {
  if (value < 0x80)
    byte(static_cast<unsigned>(value));
  else
    sized(0xCC, value, width_of(value));
}

void MsgpackBytes::integer(int64_t value) {
  auto bits = static_cast<uint64_t>(value);
  if (value >= 0)
    count(bits);
  else if (value >= -32)
    byte(static_cast<unsigned>(bits & 0xFF));
  else
    sized(0xD0, bits, width_of(~bits << 1)); // with room for the sign
}

void MsgpackBytes::real(double value) {
  if (std::isfinite(value))
    sized(0xCB - 3, std::bit_cast<uint64_t>(value), 3);
  else
    nil();
}

//   short_code: holds sizes below `short_sizes` itself.
//   code: that of a size of one byte, which some kinds do not have.
void MsgpackBytes::head(size_t size, unsigned short_code, unsigned short_sizes, unsigned code,
                        bool has_bytes) {
  if (size > std::numeric_limits<uint32_t>::max()) {
    throw Error(ErrorCode::kOutput,
                "cannot encode the profile: one of its parts holds " + std::to_string(size) +
                    " bytes or entries and the format ends at 4294967295; record fewer call paths "
                    "or clear phases more often");
  }
  if (size < short_sizes)
    byte(short_code | static_cast<unsigned>(size));
  else
    sized(code, size, std::max(width_of(size), has_bytes ? 0u : 1u));
}

void MsgpackBytes::text(std::string_view value) {
  head(value.size(), 0xA0, 32, 0xD9, true);
  out_.append(value);
}

void MsgpackBytes::binary(std::string_view value) {
  head(value.size(), 0, 0, 0xC4, true);
  out_.append(value);
}

void MsgpackBytes::array(size_t size) { head(size, 0x90, 16, 0xDB, false); }

void MsgpackBytes::map(size_t size) { head(size, 0x80, 16, 0xDD, false); }

} // namespace proton
