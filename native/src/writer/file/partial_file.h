// Files under partial names, which users look for after a run was killed. Nothing that stands at
// such a name and is not plainly a file of ours is followed, opened for long, or removed.
#pragma once

#include <string>
#include <string_view>

#include "support/file_identity.h"

namespace proton {

/// "dir/x.proton" gives "dir/x.partial.proton"; a name without suffix gets ".partial" at its end.
std::string partial_path(const std::string &path);

/// A file that no other recording writes or removes as long as this exists: it is locked, where the
/// file system has locks. It stays on the disk unless it is removed. [one thread at a time]
class OwnFile {
public:
  OwnFile() = default;
  ///   base: the partial name that was asked for.
  ///   path: the one that it got; empty, as is the base: the file has no name.
  ///   descriptor: holds the lock; ours from now on.
  OwnFile(std::string base, std::string path, int descriptor);
  ~OwnFile() { let_go(); }
  OwnFile(OwnFile &&other) noexcept { *this = static_cast<OwnFile &&>(other); }
  OwnFile &operator=(OwnFile &&other) noexcept;
  OwnFile(const OwnFile &) = delete;
  OwnFile &operator=(const OwnFile &) = delete;

  const std::string &base() const { return base_; }
  const std::string &path() const { return path_; }
  int descriptor() const { return descriptor_; }
  /// Not so where the program closed it, or `rest` did.
  bool has_descriptor() const noexcept { return identity_.is_of(descriptor_); }
  /// Not so where another file, or none, stands at the name, and in a forked child.
  bool has_name() const noexcept;

  /// Sees to it that there is a descriptor. Returns 0 or the error number.
  int reopen() noexcept;
  /// Gives it another partial name, chosen as by `open_partial`. Throws Error(kOutput) that speaks
  /// of `named`, as does `rest`.
  void move_to(const std::string &base, const std::string &named);
  /// Nothing is written to it for long. It stays locked; where the process holds many files
  /// already, it gives up lock and descriptor for a name that bears the process's number: other
  /// recordings take no such name.
  void rest(const std::string &named);
  /// Removes the file, if it has its name.
  void remove() noexcept;
  /// It may have another name by now, and is nothing to us.
  void let_go() noexcept;
  /// Hands over the descriptor of a file without a name.
  int release() noexcept;

private:
  std::string base_;
  std::string path_;
  int descriptor_ = -1;
  FileIdentity identity_; ///< of what it was opened for
};

/// Makes an empty file anew at `path`, which is a partial name. Where another one that lives writes
/// there, or something else than a file stands there: at "x.partial.1234.proton" for
/// "x.partial.proton" and process 1234. Throws Error(kOutput) that speaks of `named`.
OwnFile open_partial(const std::string &path, const std::string &named);

/// Has a new file of this content take the place of `own`, which is empty at first, or at another
/// partial name; that is chosen as by `open_partial`. A reader finds the older or the new one
/// whenever the process dies. Throws Error(kOutput); `own` is then as it was.
void replace_partial(OwnFile &own, const std::string &path, std::string_view content);

/// Removes a file that no recording holds. Links, pipes and folders of the name stay, and so does
/// everything where the file system has no locks. Returns whether the name is free.
bool remove_left_over(const std::string &path) noexcept;

} // namespace proton
