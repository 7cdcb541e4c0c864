// Unpacks gzip files of several members for tests, with zlib's own inflate.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gzip {

// zlib's z_stream.
struct Stream {
  const unsigned char *next_in = nullptr;
  unsigned int avail_in = 0;
  unsigned long total_in = 0;
  unsigned char *next_out = nullptr;
  unsigned int avail_out = 0;
  unsigned long total_out = 0;
  const char *message = nullptr;
  void *state = nullptr;
  void *allocate = nullptr;
  void *release = nullptr;
  void *opaque = nullptr;
  int data_type = 0;
  unsigned long adler = 0;
  unsigned long reserved = 0;
};

struct Zlib {
  int (*init)(Stream *, int, const char *, int) = nullptr;
  int (*inflate)(Stream *, int) = nullptr;
  int (*end)(Stream *) = nullptr;
};

inline const Zlib &zlib() {
  static const Zlib loaded = [] {
    Zlib found;
    void *library = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
      throw std::runtime_error("these tests need libz.so.1");
    found.init = reinterpret_cast<decltype(found.init)>(dlsym(library, "inflateInit2_"));
    found.inflate = reinterpret_cast<decltype(found.inflate)>(dlsym(library, "inflate"));
    found.end = reinterpret_cast<decltype(found.end)>(dlsym(library, "inflateEnd"));
    return found;
  }();
  return loaded;
}

/// One member; `bytes` is left behind it.
inline std::string unpack_member(std::string_view &bytes) {
  constexpr int kGzip = 31;
  constexpr int kStreamEnd = 1;
  Stream stream;
  if (zlib().init(&stream, kGzip, "1.2.11", sizeof stream) != 0)
    throw std::runtime_error("zlib does not begin");
  stream.next_in = reinterpret_cast<const unsigned char *>(bytes.data());
  stream.avail_in = static_cast<unsigned int>(bytes.size());
  std::string unpacked;
  int status = 0;
  while (status == 0) {
    char chunk[65536];
    stream.next_out = reinterpret_cast<unsigned char *>(chunk);
    stream.avail_out = sizeof chunk;
    status = zlib().inflate(&stream, 0);
    unpacked.append(chunk, sizeof chunk - stream.avail_out);
  }
  bytes.remove_prefix(stream.total_in);
  zlib().end(&stream);
  if (status != kStreamEnd)
    throw std::runtime_error("a gzip member is broken");
  return unpacked;
}

inline std::string unpack(std::string_view bytes, size_t *members = nullptr) {
  std::string unpacked;
  size_t count = 0;
  for (; !bytes.empty(); ++count)
    unpacked += unpack_member(bytes);
  if (members != nullptr)
    *members = count;
  return unpacked;
}

} // namespace gzip
