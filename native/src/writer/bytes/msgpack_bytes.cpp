#include "writer/bytes/msgpack_bytes.h"

#include <bit>
#include <cmath>
#include <limits>

#include "support/error.h"

namespace proton {
namespace {

uint64_t checked_length(size_t size) {
  if (size > std::numeric_limits<uint32_t>::max()) {
    throw Error(ErrorCode::kOutput,
                "cannot encode the profile: one of its parts holds " + std::to_string(size) +
                    " bytes or entries and the format ends at 4294967295; record fewer call paths "
                    "or clear phases more often");
  }
  return size;
}

} // namespace

void MsgpackBytes::big_endian(uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    byte(static_cast<unsigned>((value >> shift) & 0xFF));
}

void MsgpackBytes::count(uint64_t value) {
  if (value < 0x80) {
    byte(static_cast<unsigned>(value));
  } else if (value <= 0xFF) {
    byte(0xCC);
    big_endian(value, 1);
  } else if (value <= 0xFFFF) {
    byte(0xCD);
    big_endian(value, 2);
  } else if (value <= 0xFFFFFFFF) {
    byte(0xCE);
    big_endian(value, 4);
  } else {
    byte(0xCF);
    big_endian(value, 8);
  }
}

void MsgpackBytes::integer(int64_t value) {
  auto bits = static_cast<uint64_t>(value);
  if (value >= 0) {
    count(bits);
  } else if (value >= -32) {
    big_endian(bits, 1);
  } else if (value >= std::numeric_limits<int8_t>::min()) {
    byte(0xD0);
    big_endian(bits, 1);
  } else if (value >= std::numeric_limits<int16_t>::min()) {
    byte(0xD1);
    big_endian(bits, 2);
  } else if (value >= std::numeric_limits<int32_t>::min()) {
    byte(0xD2);
    big_endian(bits, 4);
  } else {
    byte(0xD3);
    big_endian(bits, 8);
  }
}

void MsgpackBytes::real(double value) {
  if (!std::isfinite(value)) {
    nil();
    return;
  }
  byte(0xCB);
  big_endian(std::bit_cast<uint64_t>(value), 8);
}

void MsgpackBytes::text(std::string_view value) {
  uint64_t length = checked_length(value.size());
  if (length < 32) {
    byte(0xA0 | static_cast<unsigned>(length));
  } else if (length <= 0xFF) {
    byte(0xD9);
    big_endian(length, 1);
  } else if (length <= 0xFFFF) {
    byte(0xDA);
    big_endian(length, 2);
  } else {
    byte(0xDB);
    big_endian(length, 4);
  }
  out_.append(value);
}

void MsgpackBytes::binary(std::string_view value) {
  uint64_t length = checked_length(value.size());
  if (length <= 0xFF) {
    byte(0xC4);
    big_endian(length, 1);
  } else if (length <= 0xFFFF) {
    byte(0xC5);
    big_endian(length, 2);
  } else {
    byte(0xC6);
    big_endian(length, 4);
  }
  out_.append(value);
}

void MsgpackBytes::array(size_t size) {
  uint64_t length = checked_length(size);
  if (length < 16) {
    byte(0x90 | static_cast<unsigned>(length));
  } else if (length <= 0xFFFF) {
    byte(0xDC);
    big_endian(length, 2);
  } else {
    byte(0xDD);
    big_endian(length, 4);
  }
}

void MsgpackBytes::map(size_t size) {
  uint64_t length = checked_length(size);
  if (length < 16) {
    byte(0x80 | static_cast<unsigned>(length));
  } else if (length <= 0xFFFF) {
    byte(0xDE);
    big_endian(length, 2);
  } else {
    byte(0xDF);
    big_endian(length, 4);
  }
}

} // namespace proton
