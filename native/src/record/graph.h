// Graphs: work that is captured once and launched many times.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "record/record.h"

namespace proton {

/// Where something was captured, and which sessions saw it. Counted: each holder gives it back.
using CaptureId = uint32_t; ///< 0: no session saw it
/// What an executable graph runs, as of one moment. 24 bits; 0: unknown.
using LayoutId = uint32_t;

/// Node of a record that stands for the whole launch of a graph.
inline constexpr uint64_t kWholeGraph = ~uint64_t{0};

struct GraphNode {
  uint64_t id = 0;
  CaptureId at = 0;
  bool is_kernel = false; ///< each launch makes a kernel record of it
};

struct GraphLayout {
  std::vector<GraphNode> nodes;
  std::vector<CaptureId> metrics; ///< of values that were added under capture
  bool is_known = true;           ///< false: it was made before a session listened
  /// Nothing else in it makes kernel records: a launch is over with that of its last kernel.
  bool is_exact = true;
  bool is_whole = false; ///< each launch makes one record, that of kWholeGraph
};

/// Graphs as a collector reports them. [any thread] locks
class GraphSink {
public:
  virtual ~GraphSink() = default;
  /// Keeps where the calling thread captured something.
  virtual CaptureId captured(const Capture &at) noexcept = 0;
  virtual void keep(std::span<const CaptureId> captures) noexcept = 0;
  virtual void give_back(std::span<const CaptureId> captures) noexcept = 0;
  /// A layout that launches may name from now on; it keeps its captures itself.
  virtual LayoutId add(GraphLayout layout) noexcept = 0;
  /// It is launched no more; launches that are under way are still joined with it.
  virtual void retire(LayoutId layout) noexcept = 0;
  /// Whether graphs leave values in host memory when they are launched.
  virtual bool has_device_values() noexcept = 0;
  /// What they left by now is of launches that no session saw.
  virtual void skip_device_values() noexcept = 0;
};

} // namespace proton
