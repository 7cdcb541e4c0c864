// What native threads say to the user.
#pragma once

#include <unistd.h>

#include <string>

namespace proton {

/// Writes one line to the process's own stderr, whatever the target made of Python's stream.
inline void say(const std::string &text) noexcept {
  try {
    std::string line = "proton: " + text + '\n';
    ssize_t written = write(STDERR_FILENO, line.data(), line.size());
    static_cast<void>(written);
  } catch (...) { // no memory for the line
  }
}

} // namespace proton
