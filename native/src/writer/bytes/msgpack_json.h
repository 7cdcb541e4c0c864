// MessagePack as JSON text, for files that people read.
#pragma once

#include <string>
#include <string_view>

namespace proton {

/// Appends the one value that `bytes` hold; keys become text, binary values and extensions null.
/// False, and `out` is as before, when they are no MessagePack or nest too deeply.
bool append_msgpack_as_json(std::string_view bytes, std::string &out);

} // namespace proton
