// Identifies the file behind a descriptor. A program may close descriptors that it does not know,
// and the next file that it opens gets the same number.
#pragma once

#include <sys/stat.h>

#include <compare>

namespace proton {

struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0; ///< 0: of no file

  /// Async-signal-safe, but for errno.
  static FileIdentity of(int descriptor) noexcept {
    struct stat found{};
    return fstat(descriptor, &found) == 0 ? FileIdentity{found.st_dev, found.st_ino}
                                          : FileIdentity{};
  }
  /// The file with this name, without following a link; no file if the name does not exist.
  static FileIdentity at(const char *path) noexcept {
    struct stat found{};
    return lstat(path, &found) == 0 ? FileIdentity{found.st_dev, found.st_ino} : FileIdentity{};
  }
  /// Whether the descriptor still refers to this file. Async-signal-safe, but for errno.
  bool is_of(int descriptor) const noexcept { return inode != 0 && *this == of(descriptor); }

  auto operator<=>(const FileIdentity &) const = default;
};

} // namespace proton
