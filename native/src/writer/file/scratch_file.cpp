#include "writer/file/scratch_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <system_error>
#include <utility>

#include "writer/bytes/utf8_text.h"
#include "writer/file/output_target.h"

namespace proton {
namespace {

constexpr mode_t kScratchMode = 0666; // less the process's umask
constexpr int kScratchTries = 100;

std::string folder_of(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

int flush_file(int descriptor) noexcept {
  while (fsync(descriptor) != 0)
    if (errno != EINTR)
      return errno;
  return 0;
}

// Some file systems cannot flush a folder, and some folders may not be read: nothing can be done
// then.
int flush_folder(const std::string &folder) noexcept {
  int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return errno == EACCES ? 0 : errno;
  int code = flush_file(descriptor);
  close(descriptor);
  return code == EINVAL || code == ENOTSUP || code == ENOSYS || code == EBADF ? 0 : code;
}

// A name as in proton_bench/support/files.py; "" with errno if the system gives no random number.
std::string scratch_name() {
  uint64_t number = 0;
  ssize_t size = 0;
  do
    size = getrandom(&number, sizeof number, 0);
  while (size < 0 && errno == EINTR);
  if (size != sizeof number)
    return {};
  std::array<char, 40> name{};
  std::snprintf(name.data(), name.size(), ".proton-tmp-%016llx",
                static_cast<unsigned long long>(number));
  return name.data();
}

} // namespace

ScratchFile::ScratchFile(std::string place, std::string named)
    : place_(std::move(place)), named_(std::move(named)) {
  const std::string folder = folder_of(place_);
  for (int i = 0; i < kScratchTries && descriptor_ < 0; ++i) {
    std::string name = scratch_name();
    if (name.empty())
      refuse_output(named_, errno);
    path_ = folder + '/' + name;
    descriptor_ =
        open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC,
             kScratchMode);
    if (descriptor_ < 0 && errno != EEXIST)
      break;
  }
  if (descriptor_ < 0)
    refuse_output(named_, errno);
}

ScratchFile::~ScratchFile() {
  if (descriptor_ >= 0)
    close(descriptor_);
  if (!path_.empty())
    unlink(path_.c_str());
}

void ScratchFile::take_place() {
  put_in_place(descriptor_, path_, place_, named_);
  path_.clear();
}

int ScratchFile::release() noexcept {
  path_.clear();
  return std::exchange(descriptor_, -1);
}

NotFlushed::NotFlushed(const std::string &named, int code)
    : Error(ErrorCode::kOutput,
            "'" + valid_utf8(named) +
                "' is in its place, but after a loss of power what was there before may be back: "
                "its folder cannot be flushed: " +
                std::generic_category().message(code)) {}

void put_in_place(int descriptor, const std::string &from, const std::string &to,
                  const std::string &named) {
  if (int code = flush_file(descriptor); code != 0)
    refuse_output(named, code);
  if (rename(from.c_str(), to.c_str()) != 0)
    refuse_output(named, errno);
  if (int code = flush_folder(folder_of(to)); code != 0)
    throw NotFlushed(named, code);
}

} // namespace proton
