// What the two collectors of AMD GPUs are made of, whichever library they listen to.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "collector/gpu/launches/launch_log.h"
#include "collector/gpu/launches/launch_thread.h"
#include "collector/gpu/records/delivery.h"
#include "collector/gpu/work/graph_table.h"
#include "collector/gpu/work/kernel_table.h"
#include "collector/hip/call_reader.h"
#include "collector/hip/graph_replays.h"
#include "collector/hip/hip_devices.h"
#include "collector/hip/hip_options.h"
#include "collector/hip/hip_records.h"
#include "driver/hip/hip_driver.h"
#include "support/periodic_thread.h"

namespace proton {

// Captures and graphs of HIP: handles become the numbers of the graph table.

/// HIP reports calls, not graphs: a handle is the same graph from the call that made it to the
/// one that destroys it, and later another's. So every such call is reported here, even when
/// no session listens. Functions lock, and may throw std::bad_alloc.
class HipGraphs {
public:
  explicit HipGraphs(GraphTable &table) : table_(table) {}
  void set_driver(const HipDriver *driver) noexcept { driver_ = driver; }

  /// Whether some thread captures. [any thread, no lock]
  bool has_captures() const noexcept { return open_.load(std::memory_order_relaxed) != 0; }
  void begin_capture(const HipApiCall &call, LaunchThread &thread);
  void end_capture(const HipApiCall &call, bool has_failed, LaunchThread &thread);
  /// The graph that the stream of the call captures into; 0: it does not.
  uint32_t captured_into(const HipApiCall &call, const LaunchThread &thread);
  /// Number of a graph that is being built call by call.
  uint32_t built_graph(void *graph);

  void clone(const HipApiCall &call);
  void add_child(const HipApiCall &call);
  void destroy(void *graph);
  void make_executable(const HipApiCall &call);
  void update_executable(const HipApiCall &call);
  void destroy_executable(void *executable);

  struct Launched {
    LayoutId layout = 0;
    std::shared_ptr<GraphPlan> plan; ///< null: the graph is not known
    bool is_new_unknown = false;
  };
  Launched launch(void *executable);

private:
  struct Capture {
    const void *stream; ///< of a stream that each thread has one of, the thread
    uint32_t graph;
    void *handle; ///< of the graph; null where HIP does not say before the end
  };
  struct Executable {
    uint32_t id = 0;
    std::shared_ptr<GraphPlan> plan;
  };
  uint32_t number_of(void *graph) const;
  void define(Executable &executable, uint32_t original, void *handle);

  GraphTable &table_;
  const HipDriver *driver_ = nullptr;
  std::mutex mutex_; ///< outside of the table's
  uint32_t next_id_ = 1;
  std::vector<Capture> captures_;
  std::atomic<size_t> open_{0};
  std::unordered_map<void *, uint32_t> graphs_;
  std::unordered_map<void *, Executable> executables_;
};

// The launching side of the collectors of AMD GPUs: HIP calls of the target.

class HipCalls {
public:
  struct Parts {
    LaunchLog &log;
    KernelCodes &codes;
    GraphTable &table;
    GraphSink &sink;
    HipGraphs &graphs;
    GraphReplays &replays;
  };
  explicit HipCalls(const Parts &parts) : parts_(parts) {}

  void set_driver(const HipDriver *driver) noexcept { driver_ = driver; }
  /// Whether copies are noted. Before callbacks come.
  void set_copies(bool copies) noexcept { copies_.store(copies, std::memory_order_relaxed); }
  void warn_again() noexcept { late_graph_.warn_again(); }

  /// A call of HIP began. [thread of the target]
  void enter(const HipApiCall &call, uint64_t correlation) noexcept;
  /// It ended. [thread of the target]
  void leave(const HipApiCall &call, bool has_failed) noexcept;
  /// Tag for a dispatch that the calling thread makes now; 0 outside of calls that were noted.
  static uint64_t tag_dispatch() noexcept;

private:
  bool is_watched(HipCallKind kind) const noexcept;
  void note_stream(LaunchThread &thread, void *stream) noexcept;
  void launch_graph(const HipApiCall &call, const VendorCall &vendor,
                    LaunchThread &thread) noexcept;
  void leave_launch(const HipApiCall &call, bool has_failed, LaunchThread &thread) noexcept;
  void add_node(const HipApiCall &call, const LaunchThread &thread);
  void add_built_kernel(const HipApiCall &call);
  void change_graphs(const HipApiCall &call, bool has_failed, LaunchThread &thread);

  Parts parts_;
  const HipDriver *driver_ = nullptr;
  std::atomic<bool> copies_{false};
  StreamNumbers streams_;
  LateGraph late_graph_{"HIP"};
};

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
