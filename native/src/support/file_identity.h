// Which file a descriptor was opened for: programs close descriptors that they do not know, and
// the next file that they open gets the number.
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
  /// Of what has this name, a link's own; of no file where nothing has it.
  static FileIdentity at(const char *path) noexcept {
    struct stat found{};
    return lstat(path, &found) == 0 ? FileIdentity{found.st_dev, found.st_ino} : FileIdentity{};
  }
  /// Whether the descriptor still stands for this file. Async-signal-safe, but for errno.
  bool is_of(int descriptor) const noexcept { return inode != 0 && *this == of(descriptor); }

  auto operator<=>(const FileIdentity &) const = default;
};

} // namespace proton
