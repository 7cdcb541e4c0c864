// The launching side of the collectors of AMD GPUs: HIP calls of the target.
#pragma once

#include <cstdint>

#include "collector/gpu/launches/launch_log.h"
#include "collector/gpu/launches/launch_thread.h"
#include "collector/gpu/work/graph_table.h"
#include "collector/gpu/work/kernel_table.h"
#include "collector/hip/call_form.h"
#include "collector/hip/graph_replays.h"
#include "collector/hip/hip_graphs.h"
#include "collector/hip/hip_records.h"
#include "driver/hip/hip_driver.h"

namespace proton {

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

} // namespace proton
