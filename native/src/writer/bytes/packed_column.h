// Columns of a `.proton` file: little-endian arrays, compressed one by one.
#pragma once

#include <bit>
#include <string>
#include <string_view>
#include <vector>

#include "support/deflate.h"
#include "writer/bytes/msgpack_bytes.h"

namespace proton {

static_assert(std::endian::native == std::endian::little,
              "columns are written as they stand in memory, which must be little-endian");

/// Columns up to this size stay raw: compressing them costs more than it saves.
inline constexpr size_t kMinCompressedBytes = 4096;

/// The memory of an array as bytes.
template <typename Number> std::string_view bytes_of(const std::vector<Number> &numbers) {
  return {reinterpret_cast<const char *>(numbers.data()), numbers.size() * sizeof(Number)};
}

/// Appends the keys "codec", "size" and "bytes" with their values: three entries of a map.
inline void pack_payload(MsgpackBytes &out, std::string_view bytes) {
  std::string compressed;
  bool is_compressed = bytes.size() > kMinCompressedBytes && deflate(bytes, compressed) &&
                       compressed.size() < bytes.size();
  out.text("codec");
  out.text(is_compressed ? "zlib" : "raw");
  out.text("size");
  out.count(bytes.size());
  out.text("bytes");
  out.binary(is_compressed ? std::string_view(compressed) : bytes);
}

/// Appends a column map. `dtype` is numpy's: "<i4", "<i8", "<f8", "|u1".
inline void pack_column(MsgpackBytes &out, std::string_view dtype, std::string_view bytes) {
  out.map(4);
  out.text("dtype");
  out.text(dtype);
  pack_payload(out, bytes);
}

} // namespace proton
