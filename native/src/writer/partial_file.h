// Files under partial names, which users look for after a run was killed. Nothing that stands at
// such a name and is not plainly a file of ours is followed, opened for long, or removed.
#pragma once

#include <string>

namespace proton {

/// "dir/x.proton" gives "dir/x.partial.proton"; a name without suffix gets ".partial" at its end.
std::string partial_path(const std::string &path);

/// An empty file that no other process and no other thread writes, as long as it is open.
struct OwnFile {
  std::string path;
  int descriptor = -1;
};
/// Makes a file anew at `path`, which is a partial name. Where another one that lives writes there,
/// or something else than a file stands there: at "x.partial.1234.proton" for "x.partial.proton"
/// and process 1234. Throws Error(kOutput) that speaks of `named`.
OwnFile open_partial(const std::string &path, const std::string &named);

/// Opens one of these again, locked as before where that is possible. Returns -1 with errno.
int reopen_partial(const std::string &path) noexcept;

/// Gives a file another partial name, chosen as by `open_partial`, and returns that. Throws
/// Error(kOutput) that speaks of `named`.
std::string move_partial(const std::string &from, const std::string &to, const std::string &named);

/// Replaces the file at `path`, which is a partial name, and returns where the content is: a reader
/// finds the older or the new one whenever the process dies. Throws Error(kOutput).
std::string write_partial_file(const std::string &path, std::string_view content);

/// Removes a file that no process holds. Links, pipes and folders of the name stay. Returns whether
/// the name is free.
bool remove_left_over(const std::string &path) noexcept;

} // namespace proton
