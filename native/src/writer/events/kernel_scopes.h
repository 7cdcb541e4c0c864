// Scopes inside kernels as events of a timeline.
#pragma once

#include <cstdint>
#include <map>

#include "calltree/scope_timeline.h"
#include "writer/events/event_nodes.h"
#include "writer/events/held_events.h"

namespace proton {

/// Programs go to tracks of processors, scopes to tracks of their warps.
class KernelScopes {
public:
  /// `unix_offset_ns`: unix time less CLOCK_MONOTONIC; the devices' timers count unix time.
  explicit KernelScopes(int64_t unix_offset_ns) : unix_offset_ns_(unix_offset_ns) {}
  /// `now_ns`: about when the launch ran, for devices whose timer counts something else.
  void add(const TimelineLaunch &launch, int64_t now_ns, EventNodes &nodes, HeldEvents &to);

private:
  int64_t timer_offset_ns(const TimelineLaunch &launch, int64_t now_ns);
  void add_scopes(const TimelineLaunch &launch, const TimelineProgram &program, int64_t start_ns,
                  EventNodes &nodes, HeldEvents &to);

  const int64_t unix_offset_ns_;
  std::map<int32_t, int64_t> offsets_ns_; ///< by device: its timer less CLOCK_MONOTONIC
  uint64_t links_ = 0;
};

} // namespace proton
