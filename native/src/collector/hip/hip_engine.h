// What the two collectors of AMD GPUs are made of, whichever library they listen to.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>

#include "collector/gpu/records/delivery.h"
#include "collector/hip/hip_calls.h"
#include "collector/hip/hip_devices.h"
#include "collector/hip/hip_options.h"
#include "collector/hip/hip_records.h"
#include "driver/hip/roctx_library.h"
#include "support/periodic_thread.h"

namespace proton {

/// Everything that callbacks may use at any time: made once, never destroyed.
struct HipEngine {
  /// `has_tags`: dispatches carry what HipCalls::tag_dispatch gives them.
  HipEngine(RecordSink &to, bool has_tags)
      : sink(to), launches(to, ids), graphs(to.graphs()), hip_graphs(graphs),
        calls({launches, KernelCodes::instance(), graphs, to.graphs(), hip_graphs, replays}),
        records({to, ids, launches, replays, has_tags}) {}

  /// Opens HIP where that is not done, which does not start it. Throws Error(kUnavailable).
  void open_hip(const HipOptions &options);
  /// From here on what is launched is noted.
  void arm(const HipOptions &options, ClockPairs::Read read_clock, const void *library);
  /// The next two are those of a collector; `source` asks its library.
  void flush(RecordSource &source);
  void disarm(RecordSource &source);
  /// A range began or ended on the calling thread. [thread of the target]
  void range(uint32_t operation, const char *message) noexcept;

  /// Waits for the work of all devices, unless nothing was launched so far.
  void wait_for_devices() noexcept;

  RecordSink &sink;
  std::mutex mutex; ///< of start and stop, and of what follows
  bool is_running = false;
  std::optional<HipDriver> driver;
  std::optional<HipDevices> hip_devices;
  PeriodicThread flusher;

  CorrelationIds ids;
  LaunchLog launches;
  GraphTable graphs;
  HipGraphs hip_graphs;
  GraphReplays replays;
  HipCalls calls;
  HipRecords records;
  std::atomic<bool> wants_ranges{false};
};

/// Whether this process was forked from one in which a collector of AMD GPUs was made: there
/// nothing of it may be used.
bool is_forked_from_collector() noexcept;
/// Makes that known from here on.
void watch_forks() noexcept;
/// Throws Error(kUnavailable) there; `library` is named in its text.
void refuse_forked(const char *library);

} // namespace proton
