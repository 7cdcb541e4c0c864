// When devices were busy, on behalf of one phase of a session.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <unordered_map>
#include <vector>

#include "aggregate/times/host_idle.h"
#include "aggregate/times/interval_union.h"
#include "aggregate/times/pause_list.h"
#include "calltree/call_path_tree.h"
#include "calltree/device_use.h"

namespace proton {

/// Busy and idle time of each device, as a whole and for each top-level scope: the node right below
/// the root under which something ran. Busy is the union of what ran. A gap between two pieces of
/// work belongs to the scope of the later one, for which the device was kept waiting; so does the
/// time from the first launch to the first start. Pauses of the session are not gaps.
///
/// Not synchronised: the aggregator's lock guards it.
class DeviceTimes {
  struct Device;
  struct Scope;

public:
  explicit DeviceTimes(const PauseList &pauses) : pauses_(pauses) {}

  /// Where the work of all devices is added as well; it outlives this.
  void tell(HostIdle &idle) { idle_ = &idle; }

  /// Where the records of a node go. Its address stays.
  struct Leaf {
    Device *device = nullptr; ///< null: its time is not the time of a device
    Scope *scope = nullptr;   ///< null: under no scope
    bool is_kernel = false;
    bool is_waiting = false; ///< a kernel that mostly waits for other devices
    uint64_t launches = 0;   ///< with a known time of call
    int64_t latency_ns = 0;  ///< sum over these
  };
  /// The leaf of a node with a device; `kernel` is its name to the device's tools, null for copies.
  Leaf &leaf(const CallPathTree &tree, NodeIndex node, const char *device_kind, const char *kernel);

  /// Work of a leaf, launched at `called_ns` (0: unknown).
  void add(Leaf &leaf, int64_t start_ns, int64_t end_ns, int64_t called_ns);

  /// Writes what is known so far into the tree.
  void publish(CallPathTree &tree);

private:
  static constexpr uint32_t kNoScope = 0xffffffffu;
  // Disjoint pieces of work; at most twice as many stay open. The threads of a program, such as
  // autograd's, fill buffers of their own, and a full one holds some ten thousand launches.
  static constexpr size_t kFewestOpen = 32768;
  static constexpr size_t kFewestOpenOfScope = 8192;
  // Many scopes share a budget: memory stays bounded where every step has a name of its own.
  static constexpr size_t kFewestOpenOfMany = 32;
  static constexpr size_t kManyScopes = 16;
  static constexpr size_t kMostScopes = 4096; ///< of a device; later ones count as no scope

  struct Account {
    explicit Account(size_t fewest_open) : busy(fewest_open) {}
    /// Adds to `working`, and splits that off when the first waiting kernel comes.
    void note_waiting(int64_t start_ns, int64_t end_ns, bool is_waiting);
    /// True when `busy` has to close intervals.
    bool cover(int64_t start_ns, int64_t end_ns, bool is_waiting, uint32_t owner) {
      if (is_waiting || working) [[unlikely]]
        note_waiting(start_ns, end_ns, is_waiting);
      return busy.add(start_ns, end_ns, owner);
    }
    DeviceUse summary(NodeIndex node, int32_t device, const IdleTime &closed);

    IntervalUnion busy;
    std::unique_ptr<IntervalUnion> working; ///< without waiting kernels; null: there was none
    LaunchLatency latency;
  };
  struct Scope {
    Scope(NodeIndex at, uint32_t its_number, size_t fewest_open)
        : node(at), number(its_number), account(fewest_open) {}
    NodeIndex node;
    uint32_t number;
    Account account;
    IdleTime idle; ///< gaps that were closed
  };
  struct Device {
    explicit Device(int32_t index) : device(index), account(kFewestOpen) {}
    int32_t device;
    Account account; ///< its latencies are those under no scope
    std::vector<std::unique_ptr<Scope>> scopes;
    std::unordered_map<NodeIndex, Scope *> scope_of;
    IdleTime idle; ///< gaps that were closed
    int64_t first_call_ns = std::numeric_limits<int64_t>::max();
  };

  Device &device(int32_t index);
  static Scope *scope(Device &device, const CallPathTree &tree, NodeIndex node);
  int64_t idle_in(const Gap &gap) const {
    return gap.end_ns - gap.start_ns - pauses_.within(gap.start_ns, gap.end_ns);
  }
  void close_gaps(Device &device) const;
  void publish_device(Device &device, std::vector<DeviceUse> &uses) const;

  const PauseList &pauses_;
  HostIdle *idle_ = nullptr;
  std::vector<std::unique_ptr<Device>> devices_;
  std::unordered_map<NodeIndex, Leaf> leaves_;
};

} // namespace proton
