// zlib, found at run time: where the library is absent, callers write their bytes raw.
#pragma once

#include <string>
#include <string_view>

namespace proton {

/// Compresses `bytes` into one zlib stream in `compressed`. Returns false, and leaves `compressed`
/// empty, when libz cannot be loaded or refuses. [any thread]
bool deflate(std::string_view bytes, std::string &compressed);

/// Appends `bytes` to `out` as one gzip member (RFC 1952); members that follow one another are one
/// file. Returns false, and leaves `out` as it is, when libz cannot be loaded or refuses.
/// [any thread]
bool append_gzip(std::string_view bytes, std::string &out);

} // namespace proton
