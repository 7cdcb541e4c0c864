// How a file takes its place: written beside it under an unused name, flushed, renamed.
#pragma once

#include <string>

#include "support/error.h"

namespace proton {

/// The file is in place, but a loss of power may undo that. The message says so.
class NotFlushed : public Error {
public:
  NotFlushed(const std::string &named, int code);
};

/// A new file beside its future place. It is removed unless it takes that place.
class ScratchFile {
public:
  /// Throws Error(kOutput) that names `named`, as `take_place` does.
  ///   place: with all links followed.
  ScratchFile(std::string place, std::string named);
  ~ScratchFile();
  ScratchFile(const ScratchFile &) = delete;
  ScratchFile &operator=(const ScratchFile &) = delete;

  int descriptor() const { return descriptor_; }
  const std::string &path() const { return path_; }
  /// Replaces what is there, even a link itself. May also throw NotFlushed.
  void take_place();
  /// Call if it got another name: hands over its descriptor.
  int release() noexcept;

private:
  std::string place_;
  std::string named_;
  std::string path_; ///< empty: it has taken its place
  int descriptor_ = -1;
};

/// Flushes a file, renames it, and flushes the folder, as every finished recording needs. Throws
/// Error(kOutput) that names `named`, or NotFlushed.
void put_in_place(int descriptor, const std::string &from, const std::string &to,
                  const std::string &named);

} // namespace proton
