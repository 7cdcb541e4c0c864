// Counters of the Linux kernel (perf_event_open), a group of them for each thread of the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <sys/types.h>

#include "context/thread/range_counts.h"

struct perf_event_attr;

namespace proton {

/// What is counted, in the terms of perf_event_open(2).
struct PerfEvent {
  std::string metric; ///< the name of its column
  uint32_t type = 0;
  uint64_t config = 0;
};

/// The system calls, each as the kernel's; a failure sets errno. Tests replace them.
struct PerfCalls {
  int (*open)(const perf_event_attr &attributes, int group) = nullptr; ///< of the calling thread
  ssize_t (*read)(int descriptor, void *buffer, size_t size) = nullptr;
  int (*id)(int descriptor, uint64_t &id) = nullptr; ///< the kernel's number of the event
  int (*close)(int descriptor) = nullptr;
};
/// Null: those of the system. Not while something counts.
void set_perf_calls(const PerfCalls *calls) noexcept;

/// Counts for ranges of all threads what these do in user space. A thread opens its group where its
/// first range begins; it is closed where the thread ends, at `stop`, and in a forked child, which
/// has its own.
class PerfCounters {
public:
  static PerfCounters &instance();

  /// Opens the events as one group and closes it again. Returns the errno of each, 0 for those that
  /// can be counted together: what does not fit into the processor's counters is left out.
  static std::vector<int> probe(const std::vector<PerfEvent> &events);
  /// Throws Error(kUsage) for none or more than `kMostCounts`.
  void start(const std::vector<PerfEvent> &events);
  void stop() noexcept;

  /// How long threads had counters, and how much of that these counted: less where the kernel
  /// divides the processor's counters among several users. Counts are scaled by it.
  struct Times {
    uint64_t enabled_ns = 0;
    uint64_t running_ns = 0;
  };
  Times times();
  /// Threads since the last call whose groups could not be opened, or were closed by the program.
  uint64_t take_failures() noexcept;

private:
  PerfCounters() = default;
};

} // namespace proton
