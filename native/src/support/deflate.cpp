#include "support/deflate.h"

#include <dlfcn.h>

namespace proton {
namespace {

// The two functions of zlib's C interface that we call; uLong is unsigned long there.
using CompressBound = unsigned long (*)(unsigned long);
using Compress2 = int (*)(unsigned char *, unsigned long *, const unsigned char *, unsigned long,
                          int);

constexpr int kZlibOk = 0;
// Columns are regular: higher levels cost twice the time for a few percent.
constexpr int kLevel = 4;

struct Zlib {
  CompressBound compress_bound = nullptr;
  Compress2 compress2 = nullptr;
};

Zlib load() {
  Zlib zlib;
  // Never closed: the library may be in use by others of the process.
  void *library = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return zlib;
  zlib.compress_bound = reinterpret_cast<CompressBound>(dlsym(library, "compressBound"));
  zlib.compress2 = reinterpret_cast<Compress2>(dlsym(library, "compress2"));
  return zlib;
}

} // namespace

bool deflate(std::string_view bytes, std::string &compressed) {
  static const Zlib zlib = load();
  compressed.clear();
  if (zlib.compress_bound == nullptr || zlib.compress2 == nullptr)
    return false;
  unsigned long size = zlib.compress_bound(bytes.size());
  compressed.resize(size);
  int status =
      zlib.compress2(reinterpret_cast<unsigned char *>(compressed.data()), &size,
                     reinterpret_cast<const unsigned char *>(bytes.data()), bytes.size(), kLevel);
  compressed.resize(status == kZlibOk ? size : 0);
  return status == kZlibOk;
}

} // namespace proton
