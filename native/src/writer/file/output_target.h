// What is at the path where a file is to be written, and the errors if it cannot be written.
#pragma once

#include <string>
#include <string_view>

namespace proton {

/// What a file would replace.
struct OutputTarget {
  std::string file;       ///< behind all links, also where it does not exist yet
  bool is_device = false; ///< or a pipe or a socket: it is written in place
};

/// Throws Error(kOutput) for a folder, a circle of links and a name that no file can have.
OutputTarget find_target(const std::string &path);

/// Throws Error(kOutput) with the path, the reason and what to do.
[[noreturn]] void refuse_output(const std::string &path, int code);

/// Opens a device, pipe or socket to write to. A named pipe that has no reader gets five seconds
/// for one. Returns a descriptor, or -1 with errno.
int open_device(const std::string &path) noexcept;

/// Writes all of it; returns 0 or the error number.
int write_bytes(int descriptor, std::string_view content);

} // namespace proton
