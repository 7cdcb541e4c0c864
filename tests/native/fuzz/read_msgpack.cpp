// MessagePack that becomes JSON: all of it, or nothing.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "writer/bytes/msgpack_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string out = "[";
  std::string_view bytes(reinterpret_cast<const char *>(data), size);
  bool is_read = proton::append_msgpack_as_json(bytes, out);
  if (is_read ? out.size() < 2 : out != "[")
    std::abort();
  return 0;
}
