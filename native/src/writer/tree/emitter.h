// The interface of encoders of the [tree, devices] file; the walk is in hatchet_writer.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "calltree/metric_value.h"
#include "record/device.h"

namespace proton {

/// One entry of a node's `metrics`. Texts are valid UTF-8.
struct MetricField {
  std::string_view key;
  MetricValue value;
};

/// Devices by kind ("CUDA"), then by index as text ("0").
using DeviceMap = std::map<std::string, std::map<std::string, Device>>;

/// Metrics by name -> "inc", "exc" or "pty", where readers could not infer it from ROOT.
using StatedAggregations = std::map<std::string, std::string>;

/// The order in which an encoder receives a node.
struct Layout {
  bool frame_before_children = false;
  bool sorts_keys = false;         ///< metrics in byte order, else built-in ones first
  bool drops_empty_leaves = false; ///< leaves without metrics are left out
};

/// Receives one tree in pre-order: per node open_node, then `frame` and the children between
/// open_children and close_children (in the order of `layout`), then close_node.
class Emitter {
public:
  virtual ~Emitter() = default;
  virtual Layout layout() const = 0;
  /// `stated` is empty except at the root.
  virtual void open_node(const StatedAggregations &stated) = 0;
  virtual void frame(std::string_view name, const std::vector<MetricField> &metrics) = 0;
  virtual void open_children(size_t count) = 0;
  virtual void close_children() = 0;
  virtual void close_node() = 0;
  /// Ends the file and returns its bytes; nothing may follow.
  virtual std::string finish(const DeviceMap &devices) = 0;
};

} // namespace proton
