// The process-wide locks, taken around fork() so that a child never inherits one that is held.
#pragma once

#include <cstdint>
#include <mutex>

namespace proton {

/// The order in which locks nest: who holds one takes only later ones.
enum class LockRank : uint8_t {
  kOutputs,
  kReplay,
  kAggregator,
  kGivenLists,
  kWriter,
  kThreads,
  kExpired,
  kPythonSites,
  kContexts,
  kDevices,
  kVariants,
  kMetricNames,
  kNames,
  kPtxNotes,
  kHeldFiles,
};
inline constexpr size_t kLockRanks = static_cast<size_t>(LockRank::kHeldFiles) + 1;

/// Has the mutex taken around fork(); it lives as long as the process, or until `forget`.
/// [noexcept, no lock]
void guard_across_fork(std::mutex &mutex, LockRank rank) noexcept;
void forget_across_fork(LockRank rank) noexcept;

/// Takes every guarded mutex in order. Those that are not free within a second (a holder may wait
/// for something that the forking thread holds) are passed over. [before fork]
void lock_for_fork() noexcept;
/// Gives back what `lock_for_fork` took. [after fork, in the parent]
void unlock_in_parent() noexcept;
/// The same; a mutex that was passed over is made anew: its holder does not exist here. [child]
void unlock_in_child() noexcept;
/// Whether a mutex was passed over: what it guards may be half changed here for ever. [child]
bool was_forked_in_a_change() noexcept;

} // namespace proton
