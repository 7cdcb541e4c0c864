// A file that is written piece by piece, can be read at any time, and gets its name at the end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "writer/file/partial_file.h"

namespace proton {

/// It has its partial name, beside its path; an older file at the path stays untouched until the
/// end. If it cannot be written to the end, it stays there as it was before. For standard output
/// and devices it is a file without a name, in the folder for temporary files, and is copied at the
/// end. [one thread at a time]
class GrowingFile {
public:
  /// Throws Error(kOutput), as do `append`, `move_to` and `publish`.
  ///   path: "-" is standard output.
  explicit GrowingFile(std::string path);
  /// A file that was neither published nor kept is removed.
  ~GrowingFile() { discard(); }
  GrowingFile(const GrowingFile &) = delete;
  GrowingFile &operator=(const GrowingFile &) = delete;

  /// Writes the bytes behind those before, and the tail, which the next call overwrites. At any
  /// time the file begins with what the previous call left.
  void append(std::string_view bytes, std::string_view tail);
  /// Call when nothing more is appended: if many files wait for their names, its descriptor is
  /// closed.
  void rest();
  /// Moves the file to this path's partial name; it will be published at this path.
  void move_to(const std::string &path);
  /// Flushes it to the disk and gives it its name, or copies it to its destination. May also throw
  /// NotFlushed.
  void publish();
  /// Leaves the file as it is, under its partial name.
  void keep() noexcept;
  /// Removes it; later calls have no effect.
  void discard() noexcept;
  /// Hands over the descriptor of a file without a name, at its start; -1 for a file with a name.
  int release_descriptor();

  const std::string &path() const { return path_; }
  uint64_t size() const { return size_; } ///< without the tail

private:
  bool is_spool() const { return own_.path().empty(); }
  bool is_worth_keeping() const noexcept { return own_.has_name() && size_ + tail_size_ > 0; }
  void reopen();
  void write(std::string_view bytes, std::string_view tail);
  void take_place();
  void copy_to(int descriptor);
  /// Runs `work`; after an error nothing more is written, and what is on the disk stays.
  template <typename Work> void attempt(Work work);

  std::string path_; ///< as it was given
  std::string file_; ///< the same behind links
  OwnFile own_;      ///< what is written to; a spool has no name
  uint64_t size_ = 0;
  uint64_t tail_size_ = 0;
  bool is_over_ = false; ///< published, discarded, kept or handed over
};

} // namespace proton
