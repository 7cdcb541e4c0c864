#include "writer/events/graph_runs.h"

#include <algorithm>

namespace proton {
namespace {

/// From the graph's own node down to `parent`; empty if there is no such node above.
std::vector<uint32_t> captured_path(const EventNodes &nodes, uint32_t parent) {
  std::vector<uint32_t> path;
  for (uint32_t node = nodes.known(parent); node != 0; node = nodes.parent(node)) {
    path.push_back(node);
    if (nodes.kind(node) == FrameKind::kGraph) {
      std::reverse(path.begin(), path.end());
      return path;
    }
  }
  return {};
}

} // namespace

void GraphRuns::leave(Run &run, size_t depth) {
  while (run.open.size() > depth) {
    run.slices.push_back(run.open.back());
    run.open.pop_back();
  }
}

void GraphRuns::enter(Run &run, const HeldEvent &work) {
  std::vector<uint32_t> path = captured_path(nodes_, run.parent);
  size_t shared = 0;
  while (shared < path.size() && shared < run.open.size() &&
         run.open[shared].event.node == path[shared])
    ++shared;
  leave(run, shared);
  for (size_t depth = shared; depth < path.size(); ++depth) {
    HeldEvent slice;
    slice.event.start_ns = work.event.start_ns;
    slice.event.launch = work.event.launch;
    slice.event.node = path[depth];
    slice.event.track = work.event.track;
    slice.event.device = work.event.device;
    slice.event.is_of_graph = true;
    slice.track = {TrackKind::kGraph, work.event.device, work.event.track};
    run.open.push_back(slice);
  }
}

void GraphRuns::close(Run &run) {
  leave(run, 0);
  finished_.insert(finished_.end(), run.slices.begin(), run.slices.end());
  run.slices.clear();
}

void GraphRuns::add(const HeldEvent &work) {
  Run &run = runs_[work.lane];
  uint32_t parent = nodes_.parent(work.event.node);
  bool is_other = run.launch != work.event.launch || run.slices.size() >= kMaxSlices;
  if (is_other)
    close(run);
  if (is_other || parent != run.parent) {
    run.launch = work.event.launch;
    run.parent = parent;
    enter(run, work);
  }
  for (HeldEvent &slice : run.open)
    slice.event.end_ns = std::max(slice.event.end_ns, work.event.end_ns);
}

void GraphRuns::take_finished(HeldEvents &to) {
  for (const HeldEvent &slice : finished_)
    to.add(slice);
  finished_.clear();
}

void GraphRuns::finish() {
  for (auto &[lane, run] : runs_)
    close(run);
  runs_.clear();
}

} // namespace proton
