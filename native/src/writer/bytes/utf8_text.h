// Names may hold any bytes; files hold valid UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace proton {

/// `bytes` itself if it is valid UTF-8; else `scratch`, filled with a readable form: a byte that is
/// not UTF-8 becomes the four characters \xNN, an encoded lone surrogate the six \uNNNN.
std::string_view valid_utf8(std::string_view bytes, std::string &scratch);

/// The same as an owned text.
std::string valid_utf8(std::string_view bytes);

} // namespace proton
