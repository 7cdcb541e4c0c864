// Files under partial names, which users look for after a run was killed. Unless an object at such
// a name is plainly a file of ours, it is not followed, kept open, or removed.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>

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
  /// Whether finished files may keep their descriptors: the program needs some too.
  bool has_room() noexcept;

  /// In a forked child: closes them all; none of the files is ours then. [no other thread]
  void reset_after_fork() noexcept;

private:
  HeldFiles();

  std::mutex mutex_;
  std::map<FileIdentity, int> files_; ///< with their descriptors, or -1
  size_t held_ = 0;                   ///< that have one
};

/// "dir/x.proton" gives "dir/x.partial.proton"; a name without suffix gets ".partial" at its end.
std::string partial_path(const std::string &path);

/// A file that no other recording writes or removes while this object exists: it is locked, if the
/// file system has locks. It stays on the disk unless it is removed. [one thread at a time]
class OwnFile {
public:
  OwnFile() = default;
  ///   base: the requested partial name.
  ///   path: the name that it got; empty, like the base, if the file has no name.
  ///   descriptor: holds the lock; this object owns it.
  OwnFile(std::string base, std::string path, int descriptor);
  ~OwnFile() { let_go(); }
  OwnFile(OwnFile &&other) noexcept { *this = static_cast<OwnFile &&>(other); }
  OwnFile &operator=(OwnFile &&other) noexcept;
  OwnFile(const OwnFile &) = delete;
  OwnFile &operator=(const OwnFile &) = delete;

  const std::string &base() const { return base_; }
  const std::string &path() const { return path_; }
  int descriptor() const { return descriptor_; }
  /// False if the program closed it, or after `rest`.
  bool has_descriptor() const noexcept { return identity_.is_of(descriptor_); }
  /// False if another file, or none, is at the name, and in a forked child.
  bool has_name() const noexcept;

  /// Opens a descriptor if there is none. Returns 0 or the error number.
  int reopen() noexcept;
  /// Gives it another partial name, chosen as by `open_partial`. Throws Error(kOutput) that names
  /// `named`, as `rest` does.
  void move_to(const std::string &base, const std::string &named);
  /// Call if nothing is written for long. The file stays locked; if the process holds many files,
  /// it trades lock and descriptor for a name with the process's number, which other recordings do
  /// not take.
  void rest(const std::string &named);
  /// Removes the file, if it still has its name.
  void remove() noexcept;
  /// Forgets the file, which may have another name by now.
  void let_go() noexcept;
  /// Hands over the descriptor of a file without a name.
  int release() noexcept;

private:
  std::string base_;
  std::string path_;
  int descriptor_ = -1;
  FileIdentity identity_; ///< of what it was opened for
};

/// Makes an empty file at `path`, a partial name. If a live process writes there, or something
/// other than a file is there, the name is "x.partial.1234.proton" for "x.partial.proton" and
/// process 1234. Throws Error(kOutput) that names `named`.
OwnFile open_partial(const std::string &path, const std::string &named);

/// Replaces `own`, which is empty at first, with a new file of this content, also at another
/// partial name, which is chosen as by `open_partial`. Whenever the process dies, a reader finds
/// the older or the new file. Throws Error(kOutput) and leaves `own` as it was.
void replace_partial(OwnFile &own, const std::string &path, std::string_view content);

/// Removes a file that no recording holds. Links, pipes and folders of the name stay, and so does
/// everything if the file system has no locks. Returns whether the name is free.
bool remove_left_over(const std::string &path) noexcept;

} // namespace proton
