// zlib, found at run time: where the library is absent, callers write their bytes raw.
#pragma once

#include <string>
#include <string_view>

namespace proton {

/// Compresses `bytes` into one zlib stream in `compressed`. Returns false, and leaves `compressed`
/// empty, when libz cannot be loaded or refuses. [any thread]
bool deflate(std::string_view bytes, std::string &compressed);

} // namespace proton
