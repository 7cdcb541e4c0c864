// The collector of the machine without a GPU: torch operators and interpreted Triton kernels.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "collector/collector.h"
#include "record/record_sink.h"

struct perf_event_attr;

namespace proton {

// An event that the Linux kernel counts (perf_event_open) for each thread of the program.

/// What is counted, in the terms of perf_event_open(2).
struct PerfEvent {
  std::string metric; ///< the name of its column
  uint32_t type = 0;
  uint64_t config = 0;
};

/// The system calls, each as the kernel's; a failure sets errno. Tests replace them.
struct PerfCalls {
  int (*open)(const perf_event_attr &attributes) = nullptr; ///< of the calling thread
  ssize_t (*read)(int descriptor, void *buffer, size_t size) = nullptr;
  int (*close)(int descriptor) = nullptr;
};
/// Null: those of the system. Not while something counts.
void set_perf_calls(const PerfCalls *calls) noexcept;

/// Counts for ranges of all threads what these do in user space. A thread opens its counter where
/// its first range begins; it is closed where the thread ends, at `stop`, and in a forked child,
/// which has its own.
class PerfCounter {
public:
  static PerfCounter &instance();

  /// Opens the event and closes it again. Returns an errno, 0 if it can be counted.
  static int probe(const PerfEvent &event);
  void start(const PerfEvent &event);
  void stop() noexcept;
  /// Threads since the last call that could not be counted.
  uint64_t take_failures() noexcept;

private:
  PerfCounter() = default;
};

class CpuCollector : public Collector {
public:
  /// Operators deeper than `max_depth` are not recorded; 0 records all. The event, if any, is
  /// counted inside of operators, kernels and scopes.
  CpuCollector(RecordSink &sink, uint32_t max_depth, std::optional<PerfEvent> event = {})
      : sink_(sink), max_depth_(max_depth), event_(std::move(event)) {}
  void start() override;
  /// Ranges are complete when they end; this reports what was lost.
  void flush() override;
  void stop() override;

private:
  RecordSink &sink_;
  uint32_t max_depth_;
  std::optional<PerfEvent> event_;
};

} // namespace proton
