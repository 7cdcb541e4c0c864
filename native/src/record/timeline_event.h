// What happened when: the events of timelines, handed over in batches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "record/record.h"
#include "support/name.h"

namespace proton {

struct TimelineLaunch;

enum class EventKind : uint8_t {
  kScope,       ///< of the program, a library (NVTX) or a test, on a thread
  kOp,          ///< a torch operator, on a thread
  kInterpreted, ///< a kernel that Triton's interpreter ran, on a thread
  kLaunch,      ///< the call that launched a kernel, a copy or a graph, on a thread
  kKernel,      ///< on a stream
  kCopy,        ///< or a setting of memory, on a stream
  kGraph,       ///< a graph that is recorded as a whole, on a stream
};

/// One slice. Times are of CLOCK_MONOTONIC.
struct TimelineEvent {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint64_t launch = 0; ///< joins a kLaunch with what it ran; 0: nothing to join
  uint32_t node = 0;   ///< index of an EventNode of the same phase; of a kLaunch what it launched
  uint32_t track = 0;  ///< number of the thread, or the stream
  int32_t device = -1; ///< index into the DeviceTable; -1: the host
  uint32_t values = 0; ///< position in the batch's values, counted from 1; 0: none
  EventKind kind = EventKind::kScope;
  bool is_open = false;     ///< it had not ended when the session did
  bool is_of_graph = false; ///< a node of a graph: its launch is the graph's
};

/// A frame of call paths. Those of a phase are numbered in the order in which its batches bring
/// them; 0 is the root, which no batch brings.
struct EventNode {
  uint32_t parent = 0;
  Name name;
  FrameKind kind = FrameKind::kScope;
};

/// What the program said of one instance of a scope: names with their values as text.
struct EventValues {
  std::vector<std::pair<Name, std::string>> values;
};

/// A thread of the program. Numbers are small, from 0, and belong to one thread for the life of the
/// process.
struct EventThread {
  uint32_t number = 0;
  int64_t thread_id = 0; ///< of the system; 0: unknown
  std::string name;
};

/// A reading of something that has a value at any time, e.g. a clock.
struct EventCounter {
  int64_t at_ns = 0;
  int32_t device = -1; ///< index into the DeviceTable; -1: the host
  Name name;           ///< with its unit, e.g. "SM clock (MHz)"
  double value = 0;
};

/// Events of one phase of one session, about in the order in which they ended.
struct EventBatch {
  std::vector<EventNode> nodes; ///< follow those of earlier batches of the phase
  std::vector<TimelineEvent> events;
  std::vector<EventValues> values;
  std::vector<EventThread> threads; ///< new, or by another name; again in each phase
  std::vector<EventCounter> counters;
  /// Scopes inside kernels; `kernel` is the node of the phase.
  std::vector<std::shared_ptr<const TimelineLaunch>> kernel_scopes;

  bool is_empty() const {
    return nodes.empty() && events.empty() && threads.empty() && counters.empty() &&
           kernel_scopes.empty();
  }
};

} // namespace proton
