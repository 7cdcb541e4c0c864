// The partial files of this process, and the descriptors that hold the locks on them.
#pragma once

#include <map>
#include <mutex>

#include "support/file_identity.h"

namespace proton {

/// Locks belong to open files, which forked children inherit. A child closes them, so that a lock
/// ends with the process that recorded. [any thread]
class HeldFiles {
public:
  static HeldFiles &instance();

  /// From now on the descriptor holds the file.
  void add(const FileIdentity &file, int descriptor);
  /// The file stays ours without a descriptor.
  void rest(const FileIdentity &file) noexcept;
  void forget(const FileIdentity &file) noexcept;
  bool contains(const FileIdentity &file) noexcept;
  /// Whether files that are no longer written may keep their descriptors: the program needs some
  /// too.
  bool has_room() noexcept;

  /// In a forked child: closes them all; none of the files is ours then. [no other thread]
  void reset_after_fork() noexcept;

private:
  HeldFiles();

  std::mutex mutex_;
  std::map<FileIdentity, int> files_; ///< with their descriptors, or -1
  size_t held_ = 0;                   ///< that have one
};

} // namespace proton
