#include "collector/cupti/cubins/cubin_image.h"

#include <elf.h>

#include <string>

#include "collector/cupti/cubins/byte_cursor.h"

namespace proton {
namespace {

std::span<const char> part(std::span<const char> bytes, uint64_t offset, uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset)
    return {};
  return bytes.subspan(offset, size);
}

std::string_view text_at(std::span<const char> texts, uint64_t offset) {
  if (offset >= texts.size())
    return {};
  return ByteCursor(texts.subspan(offset)).text();
}

/// The records of a table; a last one that is cut short is left out.
template <typename Record> std::vector<Record> records(std::span<const char> table) {
  ByteCursor cursor(table);
  std::vector<Record> found;
  for (size_t i = 0; i < table.size() / sizeof(Record); ++i)
    found.push_back(cursor.number<Record>());
  return found;
}

} // namespace

CubinImage::CubinImage(std::span<const char> bytes) { read_sections(bytes); }

void CubinImage::read_sections(std::span<const char> bytes) {
  auto head = ByteCursor(bytes).number<Elf64_Ehdr>();
  bool is_elf = std::string_view(reinterpret_cast<const char *>(head.e_ident), SELFMAG) == ELFMAG &&
                head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_shentsize == sizeof(Elf64_Shdr);
  if (!is_elf)
    return;
  auto headers =
      records<Elf64_Shdr>(part(bytes, head.e_shoff, uint64_t{head.e_shnum} * sizeof(Elf64_Shdr)));
  for (const Elf64_Shdr &header : headers) {
    bool is_stored = header.sh_type != SHT_NOBITS && (header.sh_flags & SHF_COMPRESSED) == 0;
    sections_.push_back(
        {{},
         header.sh_type,
         header.sh_link,
         is_stored ? part(bytes, header.sh_offset, header.sh_size) : std::span<const char>()});
  }
  if (head.e_shstrndx >= sections_.size())
    return;
  std::span<const char> names = sections_[head.e_shstrndx].content;
  for (size_t i = 0; i < sections_.size(); ++i)
    sections_[i].name = text_at(names, headers[i].sh_name);
}

std::span<const char> CubinImage::section(std::string_view name) const {
  for (const Section &section : sections_)
    if (section.name == name)
      return section.content;
  return {};
}

std::vector<CubinImage::Symbol> CubinImage::symbols() const {
  std::vector<Symbol> found;
  for (const Section &section : sections_) {
    if (section.type != SHT_SYMTAB || section.link >= sections_.size())
      continue;
    std::span<const char> names = sections_[section.link].content;
    for (const auto &symbol : records<Elf64_Sym>(section.content))
      found.push_back({text_at(names, symbol.st_name),
                       ELF64_ST_TYPE(symbol.st_info) == STT_FUNC,
                       {symbol.st_shndx, symbol.st_value}});
    break; // there is one
  }
  return found;
}

std::unordered_map<std::string_view, CubinImage::Place> CubinImage::functions() const {
  std::unordered_map<std::string_view, Place> found;
  for (const Symbol &symbol : symbols())
    if (symbol.is_function)
      found.emplace(symbol.name, symbol.place);
  return found;
}

std::map<uint64_t, CubinImage::Place> CubinImage::relocations(std::string_view name) const {
  const std::vector<Symbol> known = symbols();
  std::map<uint64_t, Place> found;
  for (const auto &each : records<Elf64_Rela>(section(".rela" + std::string(name)))) {
    if (ELF64_R_SYM(each.r_info) >= known.size())
      continue;
    Place place = known[ELF64_R_SYM(each.r_info)].place;
    place.address += static_cast<uint64_t>(each.r_addend);
    found[each.r_offset] = place;
  }
  for (const auto &each : records<Elf64_Rel>(section(".rel" + std::string(name))))
    if (ELF64_R_SYM(each.r_info) < known.size())
      found.emplace(each.r_offset, known[ELF64_R_SYM(each.r_info)].place);
  return found;
}

} // namespace proton
