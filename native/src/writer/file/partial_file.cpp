#include "writer/file/partial_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "support/fork_locks.h"
#include "writer/file/output_file.h"

namespace proton {
namespace {

// One n-th of the descriptors that the program may open.
constexpr rlim_t kShare = 4;
constexpr mode_t kPartialMode = 0666; // less the process's umask
constexpr int kNames = 100;
constexpr int kFirstOfProcess = 1; // the name before that may be another recording's
// How often a name is tried that other processes give up or take at the same time.
constexpr int kPartialTries = 8;
// A pipe or device in the place of a file must not block, nor a terminal become ours.
constexpr int kFlags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

enum class FileLock {
  kOurs,
  kTaken,
  kUnknown, ///< the file system has no locks, or not now: a live recording may write there
};

FileLock take_lock(int descriptor) noexcept {
  if (flock(descriptor, LOCK_EX | LOCK_NB) == 0)
    return FileLock::kOurs;
  return errno == EWOULDBLOCK ? FileLock::kTaken : FileLock::kUnknown;
}

bool is_named(int descriptor, const std::string &path) noexcept {
  return FileIdentity::at(path.c_str()).is_of(descriptor);
}

// The name itself, then those with the number of the process.
std::string nth_name(const std::string &path, int number) {
  if (number == 0)
    return path;
  size_t dot = path.rfind('.');
  std::string process = '.' + std::to_string(getpid());
  return path.substr(0, dot) +
         (number == kFirstOfProcess ? process : process + '-' + std::to_string(number)) +
         path.substr(dot);
}

// Returns the result of `work` for the first name that it can take, from the nth on. For a name
// that is taken, `work` returns nothing, with errno EEXIST.
template <typename Work>
auto with_free_name(const std::string &path, const std::string &named, int first, Work work) {
  for (int number = first; number < kNames; ++number) {
    const std::string name = nth_name(path, number);
    for (int i = 0; i < kPartialTries; ++i) {
      if (auto done = work(name))
        return *std::move(done);
      if (errno != EEXIST)
        refuse_output(named, errno);
      if (!remove_left_over(name))
        break;
    }
  }
  refuse_output(named, EBUSY);
}

std::optional<OwnFile> make_locked(const std::string &base, const std::string &path) {
  int descriptor = open(path.c_str(), kFlags | O_CREAT | O_EXCL, kPartialMode);
  if (descriptor < 0)
    return std::nullopt;
  // Until it is locked, other processes may take it for a left-over file.
  if (take_lock(descriptor) != FileLock::kTaken && is_named(descriptor, path))
    return OwnFile(base, path, descriptor);
  close(descriptor);
  errno = EEXIST;
  return std::nullopt;
}

// Not rename, which would replace what another process has put there meanwhile.
std::optional<std::string> rename_to_free(const std::string &from, const std::string &to) {
  if (link(from.c_str(), to.c_str()) == 0) {
    unlink(from.c_str());
    return to;
  }
  bool has_links = errno != EPERM && errno != ENOTSUP && errno != ENOSYS;
  if (has_links || FileIdentity::at(to.c_str()).inode != 0) {
    errno = has_links ? errno : EEXIST;
    return std::nullopt;
  }
  return rename(from.c_str(), to.c_str()) == 0 ? std::optional(to) : std::nullopt;
}

std::string move_partial(const std::string &from, const std::string &to, const std::string &named,
                         int first = 0) {
  return with_free_name(to, named, first,
                        [&](const std::string &name) { return rename_to_free(from, name); });
}

// Closes a second descriptor: network file systems report a full disk only then. Returns 0 or the
// error number.
int try_closing(int descriptor) noexcept {
  int second = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (second < 0)
    return errno;
  return close(second) != 0 && errno != EINTR ? errno : 0;
}

} // namespace

HeldFiles::HeldFiles() { guard_across_fork(mutex_, LockRank::kHeldFiles); }

HeldFiles &HeldFiles::instance() {
  static HeldFiles *files = new HeldFiles; // outlives the threads that write
  return *files;
}

void HeldFiles::add(const FileIdentity &file, int descriptor) {
  std::lock_guard lock(mutex_);
  int &held = files_.try_emplace(file, -1).first->second;
  held_ += held < 0;
  held = descriptor;
}

void HeldFiles::rest(const FileIdentity &file) noexcept {
  std::lock_guard lock(mutex_);
  if (auto found = files_.find(file); found != files_.end())
    held_ -= std::exchange(found->second, -1) >= 0;
}

void HeldFiles::forget(const FileIdentity &file) noexcept {
  std::lock_guard lock(mutex_);
  auto found = files_.find(file);
  if (found == files_.end())
    return;
  held_ -= found->second >= 0;
  files_.erase(found);
}

bool HeldFiles::contains(const FileIdentity &file) noexcept {
  std::lock_guard lock(mutex_);
  return files_.contains(file);
}

bool HeldFiles::has_room() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return false;
  std::lock_guard lock(mutex_);
  return held_ <= limit.rlim_cur / kShare;
}

void HeldFiles::reset_after_fork() noexcept {
  for (const auto &[file, descriptor] : files_)
    if (file.is_of(descriptor)) // else the program closed it
      close(descriptor);
  files_.clear();
  held_ = 0;
}

std::string partial_path(const std::string &path) {
  size_t slash = path.rfind('/');
  size_t start = slash == std::string::npos ? 0 : slash + 1;
  size_t dot = path.rfind('.');
  if (dot == std::string::npos || dot <= start)
    dot = path.size();
  return path.substr(0, dot) + ".partial" + path.substr(dot);
}

OwnFile::OwnFile(std::string base, std::string path, int descriptor)
    : base_(std::move(base)), path_(std::move(path)), descriptor_(descriptor),
      identity_(FileIdentity::of(descriptor)) {
  if (path_.empty())
    return;
  try {
    HeldFiles::instance().add(identity_, descriptor_);
  } catch (...) { // no memory
    close(descriptor_);
    throw;
  }
}

OwnFile &OwnFile::operator=(OwnFile &&other) noexcept {
  if (this == &other)
    return *this;
  let_go();
  base_ = std::exchange(other.base_, {});
  path_ = std::exchange(other.path_, {});
  descriptor_ = std::exchange(other.descriptor_, -1);
  identity_ = std::exchange(other.identity_, {});
  return *this;
}

bool OwnFile::has_name() const noexcept {
  return !path_.empty() && HeldFiles::instance().contains(identity_) &&
         FileIdentity::at(path_.c_str()) == identity_;
}

int OwnFile::reopen() noexcept {
  if (has_descriptor())
    return 0;
  descriptor_ = -1; // closed, or another file's by now
  if (path_.empty())
    return EBADF;
  int descriptor = open(path_.c_str(), kFlags);
  if (descriptor < 0)
    return errno;
  if (!has_name() || !identity_.is_of(descriptor)) {
    close(descriptor);
    return ESTALE;
  }
  take_lock(descriptor);
  HeldFiles::instance().add(identity_, descriptor); // known, so that this takes no memory
  descriptor_ = descriptor;
  return 0;
}

void OwnFile::move_to(const std::string &base, const std::string &named) {
  if (base == base_)
    return;
  if (has_name())
    path_ = move_partial(path_, base, named, has_descriptor() ? 0 : kFirstOfProcess);
  base_ = base;
}

void OwnFile::rest(const std::string &named) {
  // A file without a name can be reached by its descriptor only.
  if (HeldFiles::instance().has_room() || !has_descriptor() || !has_name())
    return;
  if (path_ == base_)
    path_ = move_partial(path_, base_, named, kFirstOfProcess);
  HeldFiles::instance().rest(identity_);
  if (close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR)
    refuse_output(named, errno);
}

void OwnFile::remove() noexcept {
  if (has_name())
    unlink(path_.c_str());
  let_go();
}

void OwnFile::let_go() noexcept {
  HeldFiles::instance().forget(identity_);
  if (has_descriptor())
    close(descriptor_);
  descriptor_ = -1;
  identity_ = {};
}

int OwnFile::release() noexcept {
  identity_ = {};
  return std::exchange(descriptor_, -1);
}

OwnFile open_partial(const std::string &path, const std::string &named) {
  return with_free_name(path, named, 0,
                        [&](const std::string &name) { return make_locked(path, name); });
}

void replace_partial(OwnFile &own, const std::string &path, std::string_view content) {
  SignalShield shield;
  ScratchFile file(path, path);
  int code = write_bytes(file.descriptor(), content);
  if (code == 0)
    code = try_closing(file.descriptor());
  if (code != 0)
    refuse_output(path, code);
  take_lock(file.descriptor()); // before it has the name that others look for
  std::string place = own.path();
  if (own.base() != path || !own.has_name())
    place = move_partial(file.path(), path, path);
  else if (rename(file.path().c_str(), place.c_str()) != 0)
    refuse_output(path, errno);
  OwnFile made(path, std::move(place), file.release());
  if (own.base() != path)
    own.remove();
  own = std::move(made);
  own.rest(path);
}

bool remove_left_over(const std::string &path) noexcept {
  int descriptor = open(path.c_str(), kFlags);
  if (descriptor < 0)
    return errno == ENOENT;
  struct stat facts{};
  bool is_file = fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode);
  bool is_ours = HeldFiles::instance().contains(FileIdentity::of(descriptor));
  bool is_free = false;
  // Only the holder of the lock removes the name, so the name still belongs to this file.
  if (is_file && !is_ours && take_lock(descriptor) == FileLock::kOurs)
    is_free = !is_named(descriptor, path) || unlink(path.c_str()) == 0;
  close(descriptor);
  return is_free;
}

} // namespace proton
