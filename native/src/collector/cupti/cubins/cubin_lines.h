// The places in the source that an instruction of a cubin comes from.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collector/cupti/cubins/cubin_image.h"
#include "collector/cupti/cubins/cubin_store.h"
#include "collector/cupti/cubins/line_program.h"
#include "collector/cupti/cubins/ptx_notes.h"

namespace proton {

/// One place in the source.
struct SourcePlace {
  std::string file; ///< "folder/file"
  uint32_t line = 0;
  std::string function; ///< raw name of what was inlined; empty: the kernel itself
};

/// What a compiler noted in a cubin. CUPTI knows the line of an instruction; this also knows the
/// lines that its code was inlined into, and its line of the PTX.
class CubinLines {
public:
  explicit CubinLines(CubinStore::Cubin image);

  /// The line in the kernel, the line of what was inlined there, and so on to the line of the
  /// instruction. Empty if the cubin does not say.
  std::vector<SourcePlace> places(std::string_view function, uint64_t offset) const;
  /// 0 if it is not known.
  uint32_t ptx_line(std::string_view function, uint64_t offset) const;
  /// Approximate memory, with the cubin that it keeps.
  size_t bytes() const;
  const std::vector<char> &image() const { return *bytes_; }

private:
  class Rows {
  public:
    Rows(const CubinImage &image, std::string_view section);
    const LineProgram &program() const { return program_; }
    /// The sequence and the number of its row, from 1; 0 if there is none.
    std::pair<const LineSequence *, size_t> find(const CubinImage::Place &place) const;

  private:
    LineProgram program_;
    std::multimap<uint16_t, const LineSequence *> by_section_;
  };
  void add_callers(std::vector<SourcePlace> &places, uint32_t ptx_line) const;
  CubinImage::Place place_of(std::string_view function, uint64_t offset) const;

  CubinStore::Cubin bytes_; ///< the rest points into them
  CubinImage image_;
  Rows source_;
  Rows ptx_;
  std::shared_ptr<const PtxNotes> notes_; ///< may be null
  std::unordered_map<std::string_view, CubinImage::Place> functions_;
};

} // namespace proton
