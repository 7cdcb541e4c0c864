#include "driver/cuda/cuda_driver.h"

#include <elf.h>

#include <cstring>
#include <string>

#include "check.h"

using namespace proton;

namespace {

/// An ELF image whose sections have these names, and nothing in them.
std::string image_with(const std::vector<std::string> &names) {
  std::string texts(1, '\0');
  std::vector<Elf64_Shdr> sections;
  for (const std::string &name : names) {
    Elf64_Shdr section{};
    section.sh_name = static_cast<uint32_t>(texts.size());
    texts += name + '\0';
    sections.push_back(section);
  }
  Elf64_Shdr own{};
  own.sh_offset = sizeof(Elf64_Ehdr);
  sections.push_back(own);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shoff = sizeof header + texts.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<uint16_t>(sections.size());
  header.e_shstrndx = static_cast<uint16_t>(sections.size() - 1);
  std::string image(reinterpret_cast<const char *>(&header), sizeof header);
  image += texts;
  image.append(reinterpret_cast<const char *>(sections.data()), sections.size() * sizeof own);
  return image;
}

std::string kernels(const std::string &image, size_t bytes) {
  std::string text;
  for (std::string_view name : kernels_of_cubin(image.data(), bytes))
    text += std::string(name) + " ";
  return text;
}

} // namespace

TEST(kernels_are_the_code_sections) {
  std::string image = image_with({".nv.info", ".text.add", ".text._Z3mulPf", ".debug_line"});
  CHECK_EQ(kernels(image, image.size()), "add _Z3mulPf ");
}

TEST(other_bytes_have_no_kernels) {
  CHECK_EQ(kernels_of_cubin(nullptr, 0).size(), 0);
  CHECK_EQ(kernels("no image at all", 15), "");
}

TEST(an_image_may_end_anywhere) {
  std::string image = image_with({".text.add", ".text.mul"});
  for (size_t bytes = 0; bytes < image.size(); ++bytes)
    CHECK_EQ(kernels(image.substr(0, bytes), bytes), "");
}

TEST(offsets_may_point_anywhere) {
  std::string image = image_with({".text.add"});
  for (size_t byte = EI_NIDENT; byte < image.size(); ++byte) {
    std::string damaged = image;
    damaged[byte] = '\xff';
    CHECK(kernels_of_cubin(damaged.data(), damaged.size()).size() <= 1);
  }
}
