// Which partial files are this process's, and the descriptors that hold the locks on them.
#pragma once

#include <map>
#include <mutex>

#include "support/file_identity.h"

namespace proton {

/// Locks belong to open files, which forked children inherit: they let go of them, so that a lock
/// ends with the process that recorded. [any thread]
class HeldFiles {
public:
  static HeldFiles &instance();

  /// The descriptor holds the file from now on.
  void add(const FileIdentity &file, int descriptor);
  /// The file stays ours without a descriptor.
  void rest(const FileIdentity &file) noexcept;
  void forget(const FileIdentity &file) noexcept;
  bool contains(const FileIdentity &file) noexcept;
  /// Whether files on which nothing is written any more may keep their descriptors: the program
  /// needs some, too.
  bool has_room() noexcept;

  /// In a forked child: closes them all, and none of the files is ours. [no other thread]
  void reset_after_fork() noexcept;

private:
  HeldFiles();

  std::mutex mutex_;
  std::map<FileIdentity, int> files_; ///< with their descriptors; -1: it has none
  size_t held_ = 0;                   ///< that have one
};

} // namespace proton
