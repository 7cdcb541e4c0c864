// The graphs of the process as a vendor reports them: their nodes, and where each was captured.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "collector/gpu/launches/launch_thread.h"
#include "record/record.h"

namespace proton {

/// A node, and a key that records name if they do not name the node.
struct NodeKey {
  uint64_t node = 0;
  uint64_t key = 0; ///< 0: nothing is known
};

/// Ids come from the vendor's library, or from its collector if the library has none. Every
/// function but `generation` locks.
class GraphTable {
public:
  explicit GraphTable(GraphSink &sink) : sink_(sink) {}

  /// Whether launches from now on make one record each, or one per node.
  void start(bool whole_graphs);
  /// Changes from now on are not watched. Earlier graphs may be launched again later: ids are the
  /// driver's, and no later graph reuses one.
  void suspend() noexcept;
  void forget_all() noexcept;

  void graph_created(uint32_t graph);
  void node_starting(uint32_t graph);
  void graph_cloned(uint32_t graph, uint32_t original);
  void graph_destroyed(uint32_t graph);
  /// Takes over the reference to `at`. `is_kernel`: it was captured from the launch of a kernel.
  void node_created(uint32_t graph, uint64_t node, bool is_kernel, CaptureId at);
  void node_cloned(uint32_t graph, uint64_t node, uint32_t original, uint64_t original_node);
  void node_destroyed(uint32_t graph, uint64_t node);
  void executable_starting();
  void executable_created(uint32_t original, uint32_t executable);
  void executable_destroyed(uint32_t executable);
  /// The executable graph now runs what `graph` was captured with.
  void executable_updated(uint32_t executable, uint32_t graph);

  /// The driver is asked to begin a capture; `capture_begun` or `capture_refused` follows. Waits
  /// until no thread waits for a device. [no lock held]
  void capture_starting();
  void capture_refused();
  void capture_begun(CaptureStack &stack, const void *stream, uint32_t graph);
  /// A capture that began before the collector started. `graph` is 0 if it is not known.
  void capture_found(CaptureStack &stack, const void *stream, uint32_t graph);
  void capture_ended(const void *stream);
  /// The graph that the calling thread created last; 0 if there is none.
  uint32_t newest_of_thread();

  // For vendors whose nodes have no ids: nodes of a graph are numbered in the order of their
  // making.
  /// Takes over the reference to `at`. `key`: what a record names instead of the node.
  void node_captured(uint32_t graph, bool is_kernel, uint64_t key, CaptureId at);
  /// The graph now also holds all that `from` holds: it is a clone, or gets `from` as a child.
  void graph_copied(uint32_t graph, uint32_t from);
  /// It runs what `original` holds now. `knows_all`: every node was reported.
  void executable_made(uint32_t original, uint32_t executable, bool knows_all);
  /// The kernels of an executable graph, in the order of their making.
  std::vector<NodeKey> kernel_keys(uint32_t executable);
  size_t node_count(uint32_t graph);

  /// The layout of an executable graph. `is_new_unknown`: it was made before the collector started,
  /// and this is the first launch that is seen.
  LayoutId layout(uint32_t executable, bool &is_new_unknown);
  /// Changes when a layout that was handed out may have become invalid. [any thread, no lock]
  uint32_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }

private:
  friend class CaptureStack;
  struct Node {
    uint64_t id = 0;
    bool is_kernel = false;
    uint32_t child = 0; ///< graph of a child graph node
    CaptureId at = 0;
    uint64_t key = 0; ///< see NodeKey
  };
  struct Graph {
    std::vector<Node> nodes; ///< in the order of their making
    std::vector<CaptureId> metrics;
    std::vector<uint32_t> sources; ///< graphs that the metrics were taken over from
    uint32_t next_node = 0;        ///< low half of the next id
    bool has_others = false;       ///< nodes that were not reported
  };
  /// What a thread is doing.
  struct Making {
    struct Step {
      uint32_t graph;
      bool is_node; ///< a node of the graph was begun; else the graph was created
    };
    std::vector<Step> steps;    ///< newest last
    bool is_executable = false; ///< between the two callbacks of an executable graph

    void add(Step step);
    /// Ends the newest beginning of a node of the graph. Returns the graph that was created since
    /// then, which is the node's child; 0 if there is none.
    uint32_t end_node(uint32_t graph);
  };

  static Node *find(Graph &graph, uint64_t node);
  void append_leaves(const Graph &graph, std::vector<Node> &leaves) const;
  void append_metrics(const Graph &graph, std::vector<CaptureId> &metrics) const;
  void take_metrics(Graph &to, uint32_t from);
  void inline_child(Graph &graph, uint32_t id, uint32_t child);
  void copy_leaves(const Graph &from, Graph &to, uint32_t to_id);
  void define(uint32_t executable);
  void drop_layout(uint32_t executable);
  void release(const Graph &graph);
  Making &making() { return making_[std::this_thread::get_id()]; }
  void open_capture(CaptureStack &stack, const void *stream, uint32_t graph);
  /// Updates the count of captures that forbid waiting for devices, after a change of the three.
  void count_captures() noexcept;

  GraphSink &sink_;
  std::mutex mutex_; ///< outside of the sink's
  bool whole_graphs_ = false;
  std::unordered_map<uint32_t, Graph> graphs_;
  std::unordered_map<uint32_t, LayoutId> executables_;
  std::map<std::thread::id, Making> making_;
  std::map<const void *, CaptureStack *> captures_; ///< by stream
  /// Captures that were open at the last suspension, and whose ends were not seen since.
  std::map<const void *, CaptureStack *> left_open_;
  size_t starting_ = 0; ///< captures that the driver is asked for
  size_t counted_ = 0;  ///< captures that `capture_begins` knows of
  std::atomic<uint32_t> generation_{1};
};

// Warns once about a graph that was captured before the collector started.

class LateGraph {
public:
  /// `kind`: e.g. "CUDA".
  explicit LateGraph(const std::string &kind);
  /// Lets the next launch of such a graph warn again, on stderr.
  void warn_again() noexcept { has_warned_.store(false); }
  /// Call at a launch of such a graph. [launching thread]
  void warn() noexcept;

private:
  std::string text_;
  std::atomic<bool> has_warned_{false};
};

} // namespace proton
