// A file that appears whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace proton {

/// Writes `content` beside `path`, or beside the file that it links to, flushes it to the disk and
/// renames it into place. Devices, pipes and sockets at `path` are written in place. Throws
/// Error(kOutput) with the path, the reason and what to do, and leaves an older file at `path` and
/// its partial file untouched; or throws NotFlushed.
void write_atomically(const std::string &path, std::string_view content);

/// Writes `content` to standard output. Throws Error(kOutput).
void write_to_stdout(std::string_view content);

} // namespace proton
