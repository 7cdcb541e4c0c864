// Names of the kernels in a cubin.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace proton {

/// The kernels of an ELF image, by their sections ".text.<kernel>"; empty for other bytes. The
/// names point into the image.
std::vector<std::string_view> kernels_of_cubin(const char *image, size_t bytes);

} // namespace proton
