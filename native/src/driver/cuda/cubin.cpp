#include "driver/cuda/cubin.h"

#include <elf.h>

#include <cstring>

namespace proton {
namespace {

constexpr std::string_view kPrefix = ".text.";

/// Reads a structure that lies wholly inside the image.
template <typename T> bool read_at(std::string_view image, uint64_t offset, T &value) {
  if (offset > image.size() || image.size() - offset < sizeof value)
    return false;
  std::memcpy(&value, image.data() + offset, sizeof value);
  return true;
}

/// The text that begins at an offset and ends with a NUL inside the image; empty without one.
std::string_view text_at(std::string_view image, uint64_t offset) {
  if (offset >= image.size())
    return {};
  std::string_view rest = image.substr(offset);
  size_t end = rest.find('\0');
  return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
}

} // namespace

std::vector<std::string_view> kernels_of_cubin(const char *image, size_t bytes) {
  std::vector<std::string_view> names;
  std::string_view all(image, image ? bytes : 0);
  Elf64_Ehdr header;
  bool is_elf = read_at(all, 0, header) && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_shentsize == sizeof(Elf64_Shdr);
  Elf64_Shdr texts;
  uint64_t texts_at = is_elf ? header.e_shoff + uint64_t{header.e_shstrndx} * sizeof texts : 0;
  if (!is_elf || !read_at(all, texts_at, texts))
    return names;
  for (uint64_t number = 0; number < header.e_shnum; ++number) {
    Elf64_Shdr section;
    if (!read_at(all, header.e_shoff + number * sizeof section, section))
      break;
    std::string_view name = text_at(all, texts.sh_offset + section.sh_name);
    if (name.starts_with(kPrefix))
      names.push_back(name.substr(kPrefix.size()));
  }
  return names;
}

} // namespace proton
