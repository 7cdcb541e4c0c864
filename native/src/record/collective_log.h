// Collective operations of the process, such as all_reduce: a bounded sample, the same on all
// ranks.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace proton {

/// One call.
struct Collective {
  uint32_t kind = 0;   ///< as `CollectiveLog::Contents` lists them
  uint64_t number = 0; ///< of the calls of its group, from 0: the same on all ranks
  uint64_t bytes = 0;  ///< that this rank gave; 0: unknown, or none
  int64_t start_ns =
      0;              ///< when the rank came: the call, or on a device its kernel; CLOCK_MONOTONIC
  int64_t end_ns = 0; ///< 0: unknown
};

/// The one of the process. All functions: [any thread].
class CollectiveLog {
public:
  /// One operation in one group.
  struct Kind {
    std::string name;   ///< with its backend, e.g. "gloo:all_reduce"
    std::string group;  ///< as the program's library names it; "": unknown
    uint32_t ranks = 0; ///< in the group; 0: unknown
  };
  struct Contents {
    uint64_t every = 1; ///< calls with numbers that this divides are listed
    std::vector<Kind> kinds;
    std::vector<Collective> calls; ///< in the order of their begins
  };

  static CollectiveLog &instance();

  /// Numbers a call. Throws std::bad_alloc.
  Collective begin(std::string_view name, std::string_view group, uint32_t ranks, uint64_t bytes);
  void end(Collective call) noexcept;
  /// A kernel does the work, whose record comes later.
  void launched(const Collective &call, uint64_t correlation_id) noexcept;
  /// A kernel ran; does nothing unless it was launched for a collective.
  void ran(uint64_t correlation_id, int64_t start_ns, int64_t end_ns) noexcept;
  Contents contents() const;
  /// Forgets the calls of before. Their numbers go on.
  void forget_calls() noexcept;

  static constexpr size_t kMost = 4096;

private:
  CollectiveLog();
  void set_times(const Collective &call) noexcept;

  mutable std::mutex mutex_;
  Contents contents_;
  std::unordered_map<std::string, uint64_t> numbers_; ///< of the next call, by group
  std::unordered_map<uint64_t, Collective> launched_;
};

/// Whether the name is that of a kernel of a library for collectives.
inline bool is_collective_kernel(const char *name) noexcept {
  return name && name[0] == 'n' && name[1] == 'c' && name[2] == 'c' && name[3] == 'l';
}

} // namespace proton
