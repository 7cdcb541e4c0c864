// Captures and graphs of HIP: handles become the numbers of the graph table.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "collector/gpu/launches/launch_thread.h"
#include "collector/gpu/work/graph_table.h"
#include "collector/hip/call_form.h"
#include "collector/hip/graph_replays.h"
#include "driver/hip/hip_driver.h"

namespace proton {

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

} // namespace proton
