// A file that appears whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace proton {

/// "dir/x.proton" gives "dir/x.partial.proton"; a name without suffix gets ".partial" at its end.
std::string partial_path(const std::string &path);

/// An empty file that no other process and no other thread writes, as long as it is open.
struct OwnFile {
  std::string path;
  int descriptor = -1;
};
/// Opens `path`; where another one that lives writes it, "x.partial.1234.proton" for
/// "x.partial.proton" and process 1234. Throws Error(kOutput) that speaks of `named`.
OwnFile open_own_file(const std::string &path, const std::string &named);

/// Writes `content` beside `path`, or beside the file that it links to, under another name and
/// renames it into place. Devices, pipes and sockets that stand at `path` are written in place.
/// Throws Error(kOutput) with the path, the reason and what to do; the partial file is then removed
/// and an older file at `path` untouched.
void write_atomically(const std::string &path, std::string_view content);

/// Writes `content` at `path`, which is a partial name already, so that a reader finds the older or
/// the new content whenever the process dies. Throws Error(kOutput).
void write_partial_file(const std::string &path, std::string_view content);

/// Writes `content` to standard output. Throws Error(kOutput).
void write_to_stdout(std::string_view content);

} // namespace proton
