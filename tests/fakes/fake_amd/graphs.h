// Graphs of the double of HIP, as its entry points see them.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "tracer.h"

namespace fake {

struct GraphNode {
  uint64_t id = 0;
  uint32_t child = 0; ///< a graph, or 0 for a kernel
  Kernel kernel{};
};

struct Graphs {
  std::mutex mutex;
  std::atomic<uint32_t> capturing{0}; ///< streams
  std::map<uint32_t, std::vector<GraphNode>> graphs;
  std::map<uint32_t, std::vector<Kernel>> executables;
  std::map<uint32_t, uint32_t> captures; ///< graph by stream
  uint32_t next_graph = 1;
  uint32_t next_exec = 1;
  uint64_t next_node = 1;
};

Graphs &graphs();

} // namespace fake
