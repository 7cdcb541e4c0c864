// Callbacks about graphs: their making, their capture, their launches.
#pragma once

#include <cstdint>
#include <vector>

#include "collector/cupti/callback_table.h"
#include "collector/cupti/graph_table.h"
#include "collector/cupti/launch_source.h"
#include "driver/cupti_library.h"

namespace proton {

/// Driver calls: launches, captures and updates.
class GraphCallSource : public CallbackSource {
public:
  GraphCallSource(LaunchLog &log, GraphTable &table) : log_(log), table_(table) {}
  int domain() const override { return cupti::kDomainDriver; }
  std::vector<uint32_t> callbacks() const override;
  bool may_lack_some() const override { return true; }
  void handle(uint32_t cbid, const void *data) noexcept override;

  void set_library(const CuptiLibrary *library) noexcept { library_ = library; }
  /// Has graphs that were captured before told of once more, on stderr.
  void warn_again() noexcept { has_warned_.store(false); }

private:
  void launch(const cupti::CallbackData &call) noexcept;
  void capture(uint32_t cbid, const cupti::CallbackData &call);
  void update(const cupti::CallbackData &call);
  LayoutId layout_of(void *executable);
  uint32_t executable_id(void *executable) const noexcept;
  uint32_t graph_id(void *graph) const noexcept;

  LaunchLog &log_;
  GraphTable &table_;
  const CuptiLibrary *library_ = nullptr;
  std::atomic<bool> has_warned_{false};
};

/// Graphs and nodes that come and go.
class GraphChangeSource : public CallbackSource {
public:
  GraphChangeSource(GraphSink &sink, GraphTable &table) : sink_(sink), table_(table) {}
  int domain() const override { return cupti::kDomainResource; }
  std::vector<uint32_t> callbacks() const override;
  bool may_lack_some() const override { return true; }
  void handle(uint32_t cbid, const void *data) noexcept override;

  void set_library(const CuptiLibrary *library) noexcept { library_ = library; }

private:
  void change(uint32_t cbid, const cupti::GraphData &graph);
  void add_node(const cupti::GraphData &graph);
  uint32_t graph_id(void *graph) const noexcept;
  uint64_t node_id(void *node) const noexcept;

  GraphSink &sink_;
  GraphTable &table_;
  const CuptiLibrary *library_ = nullptr;
};

} // namespace proton
