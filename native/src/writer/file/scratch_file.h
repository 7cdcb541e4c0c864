// How a file takes its place: written beside it under a name that nothing has, flushed, renamed.
#pragma once

#include <string>

#include "support/error.h"

namespace proton {

/// A file is in place, but a loss of power may undo that. The message says so.
class NotFlushed : public Error {
public:
  NotFlushed(const std::string &named, int code);
};

/// A new file beside the place that it is to take. It is removed unless it takes that.
class ScratchFile {
public:
  /// Throws Error(kOutput) that speaks of `named`, as does `take_place`.
  ///   place: behind all links.
  ScratchFile(std::string place, std::string named);
  ~ScratchFile();
  ScratchFile(const ScratchFile &) = delete;
  ScratchFile &operator=(const ScratchFile &) = delete;

  int descriptor() const { return descriptor_; }
  const std::string &path() const { return path_; }
  /// What stood there before is replaced, a link itself. Throws NotFlushed, too.
  void take_place();
  /// It has got another name: hands over its descriptor.
  int release() noexcept;

private:
  std::string place_;
  std::string named_;
  std::string path_; ///< empty: it has taken its place
  int descriptor_ = -1;
};

/// Flushes a file, gives it another name, and flushes the folder. Every finished recording goes
/// this way. Throws Error(kOutput) that speaks of `named`, or NotFlushed.
void put_in_place(int descriptor, const std::string &from, const std::string &to,
                  const std::string &named);

} // namespace proton
