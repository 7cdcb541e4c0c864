#include "support/deflate.h"

#include <dlfcn.h>

#include "check.h"

namespace {

using Uncompress = int (*)(unsigned char *, unsigned long *, const unsigned char *, unsigned long);

Uncompress find_uncompress() {
  void *library = dlopen("libz.so.1", RTLD_NOW);
  return library ? reinterpret_cast<Uncompress>(dlsym(library, "uncompress")) : nullptr;
}

std::string inflate(Uncompress uncompress, const std::string &compressed, size_t size) {
  std::string bytes(size, '\0');
  unsigned long length = size;
  int status =
      uncompress(reinterpret_cast<unsigned char *>(bytes.data()), &length,
                 reinterpret_cast<const unsigned char *>(compressed.data()), compressed.size());
  return status == 0 && length == size ? bytes : "not inflated";
}

} // namespace

TEST(what_is_compressed_inflates_to_the_same_bytes) {
  Uncompress uncompress = find_uncompress();
  std::string bytes;
  for (int i = 0; i < 10000; ++i)
    bytes += std::to_string(i % 97);
  std::string compressed = "left over";
  bool is_compressed = proton::deflate(bytes, compressed);
  CHECK_EQ(is_compressed, uncompress != nullptr);
  if (is_compressed) {
    CHECK(compressed.size() < bytes.size() / 4);
    CHECK(inflate(uncompress, compressed, bytes.size()) == bytes);
  } else {
    CHECK_EQ(compressed, "");
  }
}

TEST(nothing_compresses_to_a_stream_of_nothing) {
  Uncompress uncompress = find_uncompress();
  std::string compressed;
  bool is_compressed = proton::deflate("", compressed);
  CHECK_EQ(is_compressed, uncompress != nullptr);
  if (is_compressed)
    CHECK_EQ(inflate(uncompress, compressed, 0), "");
}
