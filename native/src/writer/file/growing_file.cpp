#include "writer/file/growing_file.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <utility>

#include "writer/bytes/utf8_text.h"
#include "writer/file/output_file.h"

namespace proton {
namespace {

constexpr const char *kStdout = "-";

std::string temporary_folder() {
  const char *named = std::getenv("TMPDIR");
  return named && *named ? named : "/tmp";
}

// A file without a name, so that nothing is left behind however the process ends.
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

struct Descriptor {
  explicit Descriptor(int number) : number(number) {}
  ~Descriptor() {
    if (number >= 0)
      close(number);
  }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;

  int number;
};

} // namespace

GrowingFile::GrowingFile(std::string path) : path_(std::move(path)) {
  SignalShield shield;
  OutputTarget target;
  if (path_ != kStdout)
    target = find_target(path_);
  if (path_ == kStdout || target.is_device) {
    own_ = OwnFile({}, {}, open_spool());
    return;
  }
  file_ = target.file;
  own_ = open_partial(partial_path(file_), path_);
}

template <typename Work> void GrowingFile::attempt(Work work) {
  if (is_over_)
    return;
  SignalShield shield;
  try {
    work();
  } catch (const NotFlushed &) {
    keep();
    throw;
  } catch (const std::exception &error) {
    std::string message = error.what();
    if (is_worth_keeping())
      message += "; what was recorded before is kept as " + valid_utf8(own_.path());
    keep();
    throw Error(ErrorCode::kOutput, message);
  }
}

// If the program closed all descriptors, ours may now be the number of another file.
void GrowingFile::reopen() {
  if (int code = own_.reopen(); code != 0)
    refuse_output(path_, code);
}

void GrowingFile::append(std::string_view bytes, std::string_view tail) {
  attempt([&] { write(bytes, tail); });
}

void GrowingFile::write(std::string_view bytes, std::string_view tail) {
  reopen();
  // What replaces the older tail is written last. So if the process is killed in the middle, the
  // file begins with the older complete one.
  std::string_view first = bytes.substr(0, bytes.size() >= tail_size_ ? tail_size_ : 0);
  uint64_t kept = size_ + tail_size_;
  int code =
      write_pieces(own_.descriptor(), bytes.substr(first.size()), tail, size_ + first.size());
  if (code == 0 && !first.empty()) {
    kept = size_;
    code = write_pieces(own_.descriptor(), first, {}, size_);
  }
  if (code != 0) {
    // Restores the older file; if that fails too, something stands behind it.
    [[maybe_unused]] int cut = ftruncate(own_.descriptor(), static_cast<off_t>(kept));
    refuse_output(path_, code);
  }
  uint64_t earlier_end = size_ + tail_size_;
  size_ += bytes.size();
  tail_size_ = tail.size();
  if (size_ + tail_size_ < earlier_end &&
      ftruncate(own_.descriptor(), static_cast<off_t>(size_ + tail_size_)) != 0)
    refuse_output(path_, errno);
}

void GrowingFile::rest() {
  attempt([this] { own_.rest(path_); });
}

void GrowingFile::move_to(const std::string &path) {
  attempt([&] {
    if (!is_spool()) {
      std::string file = find_target(path).file;
      own_.move_to(partial_path(file), path);
      file_ = std::move(file);
    }
    path_ = path;
  });
}

void GrowingFile::publish() {
  attempt([this] {
    reopen();
    take_place();
    discard();
  });
}

void GrowingFile::take_place() {
  if (path_ == kStdout)
    return copy_to(STDOUT_FILENO);
  OutputTarget target = find_target(path_); // what stands there may be another thing by now
  if (target.is_device) {
    Descriptor device{open_device(path_)};
    if (device.number < 0)
      refuse_output(path_, errno);
    copy_to(device.number);
  } else if (own_.has_name()) {
    put_in_place(own_.descriptor(), own_.path(), file_, path_);
  } else {
    ScratchFile file(target.file, path_);
    copy_to(file.descriptor());
    file.take_place();
  }
}

void GrowingFile::copy_to(int descriptor) {
  std::array<char, size_t{1} << 16> piece;
  for (uint64_t at = 0; at < size_ + tail_size_;) {
    ssize_t count = pread(own_.descriptor(), piece.data(), piece.size(), static_cast<off_t>(at));
    if (count < 0 && errno == EINTR)
      continue;
    int code = count < 0 ? errno : count == 0 ? EIO : 0;
    if (code == 0)
      code = write_bytes(descriptor, {piece.data(), static_cast<size_t>(count)});
    if (code != 0)
      refuse_output(path_ == kStdout ? "standard output" : path_, code);
    at += static_cast<uint64_t>(count);
  }
}

void GrowingFile::keep() noexcept {
  if (!is_over_ && !is_worth_keeping())
    discard();
  is_over_ = true;
  own_.let_go();
}

void GrowingFile::discard() noexcept {
  if (is_over_)
    return;
  is_over_ = true;
  own_.remove();
}

int GrowingFile::release_descriptor() {
  if (!is_spool() || is_over_)
    return -1;
  is_over_ = true;
  lseek(own_.descriptor(), 0, SEEK_SET);
  return own_.release();
}

} // namespace proton
