// Where the events of sessions that keep a timeline go.
#pragma once

#include <cstdint>

#include "record/timeline_event.h"

namespace proton {

/// One per session. Set with SessionTree::set_event_sink while the session is made; a thread that
/// waits for room keeps it alive meanwhile.
class EventSink {
public:
  virtual ~EventSink() = default;
  /// Takes a batch over without waiting. False: there was no room, and the caller counts its events
  /// as lost; nodes and threads are taken in any case. [aggregator's lock held]
  virtual bool take(uint32_t phase, EventBatch &&batch) noexcept = 0;
  /// No event of the phase comes any more. A phase whose tree is dropped before that begins anew,
  /// with nodes and threads: its sink is to forget it. [aggregator's lock held]
  virtual void end_phase(uint32_t phase) noexcept = 0;
  /// Waits while the writer is behind, a second at most; counted. For threads that deliver
  /// records of devices, never for those of the program. [no lock held]
  virtual void wait_for_room() noexcept = 0;
};

} // namespace proton
