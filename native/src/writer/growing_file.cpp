#include "writer/growing_file.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>
#include <vector>

#include "writer/output_file.h"
#include "writer/output_target.h"
#include "writer/signal_shield.h"

namespace proton {
namespace {

constexpr const char *kStdout = "-";
constexpr mode_t kMode = 0666; // less the process's umask

std::string temporary_folder() {
  const char *named = std::getenv("TMPDIR");
  return named && *named ? named : "/tmp";
}

// A file that no name leads to, so that nothing is left behind however the process ends.
int open_spool() {
  std::string folder = temporary_folder();
  int descriptor = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor >= 0)
    return descriptor;
  std::string name = folder + "/proton-XXXXXX"; // a file system without such files
  descriptor = mkostemp(name.data(), O_CLOEXEC);
  if (descriptor < 0)
    refuse_output(folder, errno);
  unlink(name.c_str());
  return descriptor;
}

int write_pieces(int descriptor, std::string_view bytes, std::string_view tail, uint64_t at) {
  while (!bytes.empty() || !tail.empty()) {
    std::array<iovec, 2> pieces{iovec{const_cast<char *>(bytes.data()), bytes.size()},
                                iovec{const_cast<char *>(tail.data()), tail.size()}};
    ssize_t written = pwritev(descriptor, pieces.data(), 2, static_cast<off_t>(at));
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return errno;
    auto count = static_cast<size_t>(written);
    at += count;
    size_t of_bytes = std::min(count, bytes.size());
    bytes.remove_prefix(of_bytes);
    tail.remove_prefix(count - of_bytes);
  }
  return 0;
}

} // namespace

GrowingFile::GrowingFile(std::string path) : path_(std::move(path)) {
  SignalShield shield;
  OutputTarget target;
  if (path_ != kStdout)
    target = find_target(path_);
  if (path_ == kStdout || target.is_device) {
    descriptor_ = open_spool();
    identity_ = FileIdentity::of(descriptor_);
    return;
  }
  file_ = target.file;
  partial_ = partial_path(file_);
  OwnFile own = open_own_file(partial_, partial_);
  partial_ = std::move(own.path);
  descriptor_ = own.descriptor;
  identity_ = FileIdentity::of(descriptor_);
}

// Programs that close all descriptors close ours too, and the next file gets its number.
void GrowingFile::reopen() {
  if (has_descriptor())
    return;
  descriptor_ = is_spool() ? -1 : open(partial_.c_str(), O_RDWR | O_CLOEXEC);
  if (has_descriptor())
    return;
  int code = descriptor_ < 0 ? EBADF : ESTALE;
  if (descriptor_ >= 0)
    ::close(std::exchange(descriptor_, -1));
  discard();
  refuse_output(path_, code);
}

void GrowingFile::append(std::string_view bytes, std::string_view tail) {
  if (is_over_)
    return;
  SignalShield shield;
  reopen();
  // What stands in place of the older tail is written last. So the file begins with the older
  // whole one, with something behind it, when the process is killed in the middle.
  std::string_view first = bytes.substr(0, bytes.size() >= tail_size_ ? tail_size_ : 0);
  int code = write_pieces(descriptor_, bytes.substr(first.size()), tail, size_ + first.size());
  if (code == 0)
    code = write_pieces(descriptor_, first, {}, size_);
  uint64_t earlier_end = size_ + tail_size_;
  size_ += bytes.size();
  tail_size_ = tail.size();
  if (code == 0 && size_ + tail_size_ < earlier_end &&
      ftruncate(descriptor_, static_cast<off_t>(size_ + tail_size_)) != 0)
    code = errno;
  if (code != 0) {
    discard();
    refuse_output(path_, code);
  }
}

void GrowingFile::close() {
  if (is_over_ || is_spool() || descriptor_ < 0)
    return;
  // Network file systems report a full disk only here.
  int code = has_descriptor() && ::close(descriptor_) != 0 && errno != EINTR ? errno : 0;
  descriptor_ = -1;
  if (code != 0) {
    discard();
    refuse_output(path_, code);
  }
}

void GrowingFile::move_to(const std::string &path) {
  if (is_over_)
    return;
  if (is_spool()) {
    path_ = path;
    return;
  }
  std::string file = find_target(path).file;
  std::string partial = partial_path(file);
  if (rename(partial_.c_str(), partial.c_str()) != 0) {
    int code = errno;
    discard();
    refuse_output(path, code);
  }
  path_ = path;
  file_ = std::move(file);
  partial_ = std::move(partial);
}

void GrowingFile::publish() {
  if (is_over_)
    return;
  SignalShield shield;
  close();
  if (!is_spool()) {
    is_over_ = true;
    if (rename(partial_.c_str(), file_.c_str()) == 0)
      return;
    int code = errno;
    unlink(partial_.c_str());
    refuse_output(path_, code);
  }
  if (path_ == kStdout) {
    copy_to(STDOUT_FILENO);
  } else {
    int device = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMode);
    if (device < 0)
      refuse_output(path_, errno);
    copy_to(device);
    ::close(device);
  }
  discard();
}

void GrowingFile::copy_to(int descriptor) {
  constexpr size_t kPiece = size_t{1} << 20;
  std::vector<char> piece(kPiece);
  for (uint64_t at = 0; at < size_ + tail_size_;) {
    ssize_t count = pread(descriptor_, piece.data(), kPiece, static_cast<off_t>(at));
    if (count < 0 && errno == EINTR)
      continue;
    int code = count < 0 ? errno : count == 0 ? EIO : 0;
    if (code == 0)
      code = write_bytes(descriptor, {piece.data(), static_cast<size_t>(count)});
    if (code != 0) {
      if (descriptor != STDOUT_FILENO)
        ::close(descriptor);
      refuse_output(path_ == kStdout ? "standard output" : path_, code);
    }
    at += static_cast<uint64_t>(count);
  }
}

void GrowingFile::discard() noexcept {
  if (has_descriptor())
    ::close(descriptor_);
  descriptor_ = -1;
  if (!is_over_ && !is_spool())
    unlink(partial_.c_str());
  is_over_ = true;
}

int GrowingFile::release_descriptor() {
  if (!is_spool() || is_over_)
    return -1;
  is_over_ = true;
  lseek(descriptor_, 0, SEEK_SET);
  int released = descriptor_;
  descriptor_ = -1;
  return released;
}

} // namespace proton
