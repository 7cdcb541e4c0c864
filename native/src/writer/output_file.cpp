#include "writer/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "writer/output_target.h"
#include "writer/signal_shield.h"

namespace proton {
namespace {

// Ends the name of a file that replaces a partial one; no reader takes it for a profile.
constexpr const char *kNew = ".new";

// Opens, writes and closes; returns 0 or the error number.
int write_new(const std::string &path, int flags, std::string_view content) {
  constexpr mode_t kMode = 0666; // less the process's umask
  int descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, kMode);
  if (descriptor < 0)
    return errno;
  int code = write_bytes(descriptor, content);
  // Network file systems report a full disk only here.
  if (close(descriptor) != 0 && code == 0 && errno != EINTR)
    code = errno;
  return code;
}

// Writes a file under another name and renames it.
void replace_file(const std::string &path, const std::string &temporary, std::string_view content) {
  int code = write_new(temporary, O_CREAT | O_TRUNC, content);
  if (code == 0 && rename(temporary.c_str(), path.c_str()) != 0)
    code = errno;
  if (code != 0) {
    unlink(temporary.c_str());
    refuse_output(path, code);
  }
}

} // namespace

std::string partial_path(const std::string &path) {
  size_t slash = path.rfind('/');
  size_t start = slash == std::string::npos ? 0 : slash + 1;
  size_t dot = path.rfind('.');
  if (dot == std::string::npos || dot <= start)
    dot = path.size();
  return path.substr(0, dot) + ".partial" + path.substr(dot);
}

void write_atomically(const std::string &path, std::string_view content) {
  SignalShield shield;
  OutputTarget target = find_target(path);
  if (target.is_device) {
    if (int code = write_new(path, 0, content); code != 0)
      refuse_output(path, code);
    return;
  }
  const std::string &file = target.file;
  std::string partial = partial_path(file);
  struct stat earlier{};
  if (stat(partial.c_str(), &earlier) != 0) {
    replace_file(file, partial, content);
    return;
  }
  // What was flushed while recording stays readable until the new file is whole.
  replace_file(file, partial + kNew, content);
  unlink(partial.c_str());
}

void write_partial_file(const std::string &path, std::string_view content) {
  SignalShield shield;
  replace_file(path, path + kNew, content);
}

void write_to_stdout(std::string_view content) {
  SignalShield shield;
  if (int code = write_bytes(STDOUT_FILENO, content); code != 0)
    refuse_output("standard output", code);
}

} // namespace proton
