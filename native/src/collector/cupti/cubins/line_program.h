// The table of lines that a compiler leaves in a cubin: DWARF 2, with what NVIDIA's tools add.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/cupti/cubins/cubin_image.h"

namespace proton {

/// Covers addresses up to that of the next row.
struct LineRow {
  uint64_t address = 0;
  uint32_t file = 0; ///< of LineProgram::files; 0 if there is none
  uint32_t line = 0; ///< 0: no line
  /// Row of the same sequence, counted from 1, into whose line this one was inlined; or 0.
  uint32_t inlined_at = 0;
  std::string_view function; ///< that was inlined; empty where that is not known
};

/// Consecutive instructions in one section.
struct LineSequence {
  uint16_t section = 0;
  uint64_t end = 0;          ///< address behind the last instruction
  std::vector<LineRow> rows; ///< as the compiler wrote them: addresses do not fall
};

/// Points into the image. What does not make sense ends the unit; sequences that ended before it
/// are kept.
class LineProgram {
public:
  /// `section` is ".debug_line", or ".nv_debug_line_sass" whose lines are those of the PTX.
  LineProgram(const CubinImage &image, std::string_view section);

  const std::vector<LineSequence> &sequences() const { return sequences_; }
  /// "folder/file"; empty if the table does not say.
  const std::string &file(uint32_t number) const;
  /// Approximate memory.
  size_t bytes() const { return bytes_; }

private:
  struct Unit;
  struct State;
  static constexpr size_t kMostRows = size_t{1} << 21;

  size_t read_unit(size_t at);
  uint64_t read_files(class ByteCursor &cursor, size_t program);
  void run(ByteCursor &cursor, const Unit &unit);
  /// Returns whether the sequence has ended.
  bool run_extended(ByteCursor &cursor, const Unit &unit, State &state);
  bool run_standard(ByteCursor &cursor, const Unit &unit, uint8_t opcode, State &state);
  void add_row(const State &state);

  std::span<const char> bytes_of_section_;
  std::span<const char> texts_;
  std::map<uint64_t, CubinImage::Place> places_;
  std::vector<std::string> files_{""};
  std::vector<LineSequence> sequences_;
  LineSequence open_;
  size_t rows_ = 0;
  size_t units_ = 0;
  size_t bytes_ = 0;
};

} // namespace proton
