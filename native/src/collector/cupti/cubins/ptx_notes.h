// Inlining as Triton before 3.9 notes it: comments in its PTX, which no cubin keeps.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/cupti/cubins/cubin_image.h"

namespace proton {

/// The chains of a text: ".loc 1 9 15 // a.py:9:15 @[ a.py:14:14 @[ a.py:22:19 ] ]" is line 9,
/// inlined into line 14, inlined into line 22 of the kernel.
class PtxNotes {
public:
  /// A file and a line of it.
  using Place = std::pair<std::string, uint32_t>;

  explicit PtxNotes(std::string_view ptx);
  /// Places of the line of PTX, the kernel's first; empty if nothing was inlined.
  const std::vector<Place> &find(uint32_t ptx_line) const;
  size_t bytes() const { return bytes_; }

private:
  void read_loc(std::string_view rest, uint32_t ptx_line);
  void read_file(std::string_view rest);
  std::string path_of(std::string_view name) const;
  void complete();

  std::map<uint32_t, std::vector<Place>> by_line_; ///< up to the next one
  std::map<uint32_t, std::string> files_;
  size_t bytes_ = 0;
};

/// Notes for the cubins of this process, for its whole life. [any thread]
class PtxNoteStore {
public:
  static PtxNoteStore &instance();
  /// Notes the PTX that a cubin was made of. Past a limit, or if nothing was inlined, nothing is
  /// kept.
  void add(const CubinImage &cubin, std::string_view ptx);
  /// Null for a cubin that was not noted.
  std::shared_ptr<const PtxNotes> find(const CubinImage &cubin) const;

private:
  static constexpr size_t kMostBytes = size_t{64} << 20;
  mutable std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<const PtxNotes>> notes_;
  size_t bytes_ = 0;
};

} // namespace proton
