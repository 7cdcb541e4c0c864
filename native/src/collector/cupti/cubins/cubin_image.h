// The parts of a cubin, which is an ELF file of 64 bits.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace proton {

/// What it returns points into the bytes. If they are not a cubin, it has no parts.
class CubinImage {
public:
  struct Place {
    uint16_t section = 0;
    uint64_t address = 0;
    bool operator==(const Place &other) const = default;
  };

  explicit CubinImage(std::span<const char> bytes);

  /// Empty if there is no such section.
  std::span<const char> section(std::string_view name) const;
  /// Where each function begins.
  std::unordered_map<std::string_view, Place> functions() const;
  /// What the bytes of a section will hold, by their offset in it.
  std::map<uint64_t, Place> relocations(std::string_view name) const;

private:
  struct Section {
    std::string_view name;
    uint32_t type = 0;
    uint32_t link = 0;
    std::span<const char> content;
  };
  struct Symbol {
    std::string_view name;
    bool is_function = false;
    Place place;
  };
  void read_sections(std::span<const char> bytes);
  std::vector<Symbol> symbols() const;

  std::vector<Section> sections_;
};

} // namespace proton
