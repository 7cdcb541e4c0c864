// A table of lines, as the content of the section that holds it.
#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "collector/cupti/cubins/line_program.h"

using namespace proton;

namespace {

using namespace std::literals;
constexpr std::string_view kNames = "\0.debug_line\0.debug_str\0.names\0"sv;
constexpr std::string_view kTexts = "first\0second\0"sv;

/// An ELF image with this table and little else.
std::vector<char> image_of(std::string_view table) {
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_shentsize = sizeof(Elf64_Shdr);
  head.e_shnum = 3;
  head.e_shstrndx = 2;
  head.e_shoff = sizeof head;
  std::string_view contents[3] = {table, kTexts, kNames};
  Elf64_Shdr sections[3] = {};
  uint64_t at = sizeof head + sizeof sections;
  for (size_t i = 0; i < 3; ++i) {
    sections[i].sh_type = SHT_PROGBITS;
    sections[i].sh_offset = at;
    sections[i].sh_size = contents[i].size();
    at += contents[i].size();
  }
  sections[0].sh_name = 1;
  sections[1].sh_name = 13;
  sections[2].sh_name = 24;
  std::vector<char> image(at - table.size() - kTexts.size() - kNames.size());
  std::memcpy(image.data(), &head, sizeof head);
  std::memcpy(image.data() + sizeof head, sections, sizeof sections);
  for (std::string_view content : contents)
    image.insert(image.end(), content.begin(), content.end());
  return image;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::vector<char> bytes = image_of({reinterpret_cast<const char *>(data), size});
  CubinImage image(bytes);
  if (image.section(".debug_line").size() != size)
    std::abort();
  LineProgram program(image, ".debug_line");
  for (const LineSequence &sequence : program.sequences())
    for (const LineRow &row : sequence.rows)
      if (program.file(row.file).size() > bytes.size() * 2 || row.function.size() > kTexts.size())
        std::abort();
  return 0;
}
