#include "writer/bytes/packed_column.h"

#include <string>

#include "support/deflate.h"

namespace proton {

void pack_payload(MsgpackBytes &out, std::string_view bytes) {
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

void pack_column(MsgpackBytes &out, std::string_view dtype, std::string_view bytes) {
  out.map(4);
  out.text("dtype");
  out.text(dtype);
  pack_payload(out, bytes);
}

} // namespace proton
