// The process-wide locks, taken around fork() so that a child never inherits one that is held.
#pragma once

#include <cstdint>
#include <mutex>

namespace proton {

/// The order in which locks nest: a thread that holds one takes only later ones.
enum class LockRank : uint8_t {
  kOutputs,
  kReplay,
  kSteps,
  kAggregator,
  kGivenLists,
  kWriter,
  kThreads,
  kExpired,
  kPythonSites,
  kLayers,
  kContexts,
  kTaskFrames,
  kDevices,
  kVariants,
  kWorks,
  kInstructions,
  kMetricNames,
  kNames,
  kHeldFiles,
  kMemory,
  kPerfCounters,
  kCollectives,
};
inline constexpr size_t kLockRanks = static_cast<size_t>(LockRank::kCollectives) + 1;

/// Registers a mutex to be taken around fork(). It lives as long as the process, or until `forget`.
/// [noexcept, no lock]
void guard_across_fork(std::mutex &mutex, LockRank rank) noexcept;
void forget_across_fork(LockRank rank) noexcept;

/// Takes every registered mutex in order. One that is not free within a second is skipped: its
/// holder may wait for something that the forking thread holds. [before fork]
void lock_for_fork() noexcept;
/// Releases what `lock_for_fork` took. [after fork, in the parent]
void unlock_in_parent() noexcept;
/// Same in the child. A mutex that was skipped is made anew: its holder does not exist here.
/// [child]
void unlock_in_child() noexcept;
/// Whether a mutex was skipped, so that what it guards may stay half changed. [child]
bool was_forked_in_a_change() noexcept;

} // namespace proton
