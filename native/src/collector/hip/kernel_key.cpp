#include "collector/hip/kernel_key.h"

#include <cstring>
#include <functional>
#include <string_view>

namespace proton {

uint32_t plain_length(const char *name) noexcept {
  std::string_view text(name);
  if (text.ends_with(".kd"))
    text.remove_suffix(3);
  return static_cast<uint32_t>(text.size());
}

uint64_t kernel_key(const char *name, const uint32_t (&work_items)[3],
                    const uint32_t (&block)[3]) noexcept {
  if (!name)
    return 0;
  uint64_t named = std::hash<std::string_view>{}(std::string_view(name, plain_length(name)));
  uint64_t shape = 0;
  for (uint32_t value : work_items)
    shape = (shape ^ value) * 0x9E3779B97F4A7C15ull;
  for (uint32_t value : block)
    shape = (shape ^ value) * 0x9E3779B97F4A7C15ull;
  return named >> 32 << 32 | 1u << 31 | shape >> 33; // never 0
}

} // namespace proton
