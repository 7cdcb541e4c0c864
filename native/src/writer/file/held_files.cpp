#include "writer/file/held_files.h"

#include <sys/resource.h>
#include <unistd.h>

#include <utility>

#include "support/fork_locks.h"

namespace proton {
namespace {

using Lock = std::lock_guard<std::mutex>;

// One n-th of the descriptors that the program may open.
constexpr rlim_t kShare = 4;

} // namespace

HeldFiles::HeldFiles() { guard_across_fork(mutex_, LockRank::kHeldFiles); }

HeldFiles &HeldFiles::instance() {
  static HeldFiles *files = new HeldFiles; // outlives the threads that write
  return *files;
}

void HeldFiles::add(const FileIdentity &file, int descriptor) {
  Lock lock(mutex_);
  int &held = files_.try_emplace(file, -1).first->second;
  held_ += held < 0;
  held = descriptor;
}

void HeldFiles::rest(const FileIdentity &file) noexcept {
  Lock lock(mutex_);
  if (auto found = files_.find(file); found != files_.end())
    held_ -= std::exchange(found->second, -1) >= 0;
}

void HeldFiles::forget(const FileIdentity &file) noexcept {
  Lock lock(mutex_);
  auto found = files_.find(file);
  if (found == files_.end())
    return;
  held_ -= found->second >= 0;
  files_.erase(found);
}

bool HeldFiles::contains(const FileIdentity &file) noexcept {
  Lock lock(mutex_);
  return files_.contains(file);
}

bool HeldFiles::has_room() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return false;
  Lock lock(mutex_);
  return held_ <= limit.rlim_cur / kShare;
}

void HeldFiles::reset_after_fork() noexcept {
  for (const auto &[file, descriptor] : files_)
    if (file.is_of(descriptor)) // else the program closed it
      close(descriptor);
  files_.clear();
  held_ = 0;
}

} // namespace proton
