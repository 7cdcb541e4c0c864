// How a file takes its place: written beside it under a name that nothing has, flushed, renamed.
#pragma once

#include <string>

namespace proton {

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
  /// What stood there before is replaced, a link itself. Flushed, it outlives a loss of power.
  void take_place(bool is_flushed);

private:
  std::string place_;
  std::string named_;
  std::string path_; ///< empty: it has taken its place
  int descriptor_ = -1;
};

/// Flushes a file, gives it another name, and flushes the folder. Every finished recording goes
/// this way. Returns 0 or the error number.
int put_in_place(int descriptor, const std::string &from, const std::string &to) noexcept;

} // namespace proton
