// A file that is written piece by piece, readable at any time, and gets its own name at its end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "writer/file/partial_file.h"

namespace proton {

/// Stands beside its path under its partial name; an older file at the path stays untouched until
/// the end. Where it cannot be written to its end it stays there as it was before. For standard
/// output and devices it has no name, in the folder for temporary files, and is copied at the end.
/// [one thread at a time]
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
  /// time the file begins with what the call before left.
  void append(std::string_view bytes, std::string_view tail);
  /// Nothing more is appended: where many files wait for their names, its descriptor is given back.
  void rest();
  /// The file is to stand at this path, and under its partial name beside it.
  void move_to(const std::string &path);
  /// Flushes it to the disk and gives it its name; or copies it to where it belongs. Throws
  /// NotFlushed, too.
  void publish();
  /// Nothing more is done to it, nor is it removed: it stays under its partial name.
  void keep() noexcept;
  /// Removes it; nothing after that has an effect.
  void discard() noexcept;
  /// Hands over a file without a name, read from its start; -1 for one that has a name.
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
  /// Does something; an error is the end of the file, and what is on the disk stays.
  template <typename Work> void attempt(Work work);

  std::string path_; ///< as it was given
  std::string file_; ///< the same behind links
  OwnFile own_;      ///< what is written to; a spool has no name
  uint64_t size_ = 0;
  uint64_t tail_size_ = 0;
  bool is_over_ = false; ///< published, discarded, kept or handed over
};

} // namespace proton
