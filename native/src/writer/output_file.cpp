#include "writer/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "writer/output_target.h"
#include "writer/signal_shield.h"

namespace proton {
namespace {

// Ends the name of a file that is not whole yet; no reader takes it for a profile.
constexpr const char *kNew = ".new";
constexpr mode_t kMode = 0666; // less the process's umask

// Writes to a device or a pipe; returns 0 or the error number.
int write_device(const std::string &path, std::string_view content) {
  int descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0)
    return errno;
  int code = write_bytes(descriptor, content);
  // Network file systems report a full disk only here.
  if (close(descriptor) != 0 && code == 0 && errno != EINTR)
    code = errno;
  return code;
}

bool is_same_file(int descriptor, const std::string &path) {
  struct stat opened{};
  struct stat named{};
  return fstat(descriptor, &opened) == 0 && stat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// Returns -1 where another one that lives writes a file of this name.
int open_locked(const std::string &path, const std::string &named) {
  constexpr int kTries = 8;
  for (int i = 0; i < kTries; ++i) {
    int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMode);
    if (descriptor < 0)
      refuse_output(named, errno);
    bool is_taken = flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    // The other one may have given its file its own name since ours was opened.
    if (!is_taken && is_same_file(descriptor, path)) {
      if (ftruncate(descriptor, 0) == 0)
        return descriptor;
      int code = errno;
      close(descriptor);
      refuse_output(named, code);
    }
    close(descriptor);
    if (is_taken)
      return -1;
  }
  return -1;
}

// Writes a file under another name and renames it. Two that are given one name at the same time do
// not mix their bytes.
void replace_file(const std::string &path, const std::string &temporary, std::string_view content) {
  OwnFile own = open_own_file(temporary, path);
  int code = write_bytes(own.descriptor, content);
  // Network file systems report a full disk only on closing, and the file is its own until then.
  int copy = code == 0 ? dup(own.descriptor) : -1;
  if (copy >= 0 && close(copy) != 0 && errno != EINTR)
    code = errno;
  if (code == 0 && rename(own.path.c_str(), path.c_str()) != 0)
    code = errno;
  close(own.descriptor);
  if (code != 0) {
    unlink(own.path.c_str());
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

OwnFile open_own_file(const std::string &path, const std::string &named) {
  constexpr int kTries = 100;
  size_t dot = path.rfind('.');
  std::string process = '.' + std::to_string(getpid());
  for (int i = 0; i < kTries; ++i) {
    std::string number = i == 0 ? "" : i == 1 ? process : process + '-' + std::to_string(i);
    std::string tried = path.substr(0, dot) + number + path.substr(dot);
    if (int descriptor = open_locked(tried, named); descriptor >= 0)
      return {std::move(tried), descriptor};
  }
  refuse_output(named, EBUSY);
}

void write_atomically(const std::string &path, std::string_view content) {
  SignalShield shield;
  OutputTarget target = find_target(path);
  if (target.is_device) {
    if (int code = write_device(path, content); code != 0)
      refuse_output(path, code);
    return;
  }
  // What was flushed while recording stays readable until the new file is whole.
  std::string partial = partial_path(target.file);
  replace_file(target.file, partial + kNew, content);
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
