// When devices were busy, on behalf of one phase of a session.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <unordered_map>
#include <vector>

#include "calltree/call_path_tree.h"

namespace proton {

// The union of intervals that come nearly in order, in bounded memory.

/// Time between two intervals of a union, and the owner of the interval that ended it.
struct Gap {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint32_t owner = 0;
};

/// The newest `fewest_open` disjoint intervals at least stay open: what comes before, between or
/// across them is exact, in any order. Older ones are closed for good, as a sum; of what comes
/// later and began before their end, the part before that end counts as late and not as covered. So
/// the true measure lies between `covered_ns()` and `covered_ns() + late_ns()`.
///
/// Intervals that touch are one. Its owner is that of the part that begins first.
///
/// Records of several threads come in blocks of thousands, one thread after the other. So what does
/// not begin last is put aside, and merged when many have come or somebody reads.
class IntervalUnion {
public:
  explicit IntervalUnion(size_t fewest_open) : fewest_open_(fewest_open) {}

  /// Adds [start, end). True when twice as many are open as must be: `close_older` is due.
  [[nodiscard]] bool add(int64_t start_ns, int64_t end_ns, uint32_t owner) {
    if (!blocks_.empty() && start_ns < blocks_.back().start_ns) {
      aside_.push_back({start_ns, end_ns, owner});
    } else if (!blocks_.empty() && start_ns <= blocks_.back().end_ns) {
      blocks_.back().end_ns = std::max(blocks_.back().end_ns, end_ns);
      return false;
    } else {
      blocks_.push_back({start_ns, end_ns, owner});
    }
    return blocks_.size() + aside_.size() >= 2 * fewest_open_;
  }
  /// `visit(Gap)` gets the gap in front of each interval that is closed.
  template <typename Visit> void close_older(Visit &&visit) {
    merge();
    if (blocks_.size() <= fewest_open_)
      return;
    size_t count = blocks_.size() - fewest_open_;
    visit_gaps(count, visit);
    forget_older(count);
  }

  bool empty() const { return blocks_.empty(); }
  int64_t covered_ns();
  /// After `covered_ns`, it counts what came until then.
  int64_t late_ns() const { return late_ns_; }
  /// Start and owner of the first interval of all. Not empty.
  int64_t first_start_ns() { return first().start_ns; }
  uint32_t first_owner() { return first().owner; }
  /// Not empty.
  int64_t last_end_ns() {
    merge();
    return blocks_.back().end_ns;
  }
  /// The gaps in front of open intervals, in order.
  template <typename Visit> void for_each_open_gap(Visit &&visit) {
    merge();
    visit_gaps(blocks_.size(), visit);
  }

private:
  struct Block {
    int64_t start_ns;
    int64_t end_ns;
    uint32_t owner;
  };

  const Block &first() {
    merge();
    return has_closed_ ? first_closed_ : blocks_.front();
  }
  /// Puts what stands aside where it belongs.
  void merge();
  void cut_late();
  void forget_older(size_t count);
  template <typename Visit> void visit_gaps(size_t count, Visit &&visit) const {
    bool has_before = has_closed_;
    int64_t before_ns = closed_until_ns_;
    for (size_t i = 0; i < count; ++i) {
      if (has_before)
        visit(Gap{before_ns, blocks_[i].start_ns, blocks_[i].owner});
      before_ns = blocks_[i].end_ns;
      has_before = true;
    }
  }

  size_t fewest_open_;
  std::vector<Block> blocks_; ///< open, disjoint and in order
  std::vector<Block> aside_;  ///< that began before the newest of `blocks_`, as they came
  Block first_closed_{};
  bool has_closed_ = false;
  int64_t closed_until_ns_ = 0;
  int64_t closed_ns_ = 0;
  int64_t late_ns_ = 0;
};

// What the host did while no device worked, on behalf of one phase of a session.

/// Splits gaps in the work of all devices together among the nodes at which the main thread was
/// seen. Work is reported late and nearly in order, samples come at once and in order; either waits
/// for the other in bounded memory. Time before the first work and after the last one counts.
///
/// Not synchronised: the aggregator's lock guards it.
class HostIdle {
public:
  /// A device worked.
  void add_work(int64_t start_ns, int64_t end_ns);
  /// The main thread was at the node.
  void add_sample(NodeIndex node, int64_t start_ns, int64_t end_ns);
  /// Writes what is known so far into the tree; nothing if no device worked.
  void publish(CallPathTree &tree);

private:
  static constexpr size_t kFewestOpen = 32768; ///< as many as a device's
  static constexpr size_t kMostWaiting = size_t{1} << 16;

  struct Span {
    int64_t start_ns;
    int64_t end_ns;
    NodeIndex node;
  };
  struct Idle {
    int64_t known_ns = 0;
    int64_t shown_ns = 0; ///< in the tree
  };

  void add_gap(const Gap &gap);
  void match();

  IntervalUnion work_{kFewestOpen};
  bool has_closed_ = false;
  std::deque<Span> samples_; ///< that no closed gap has passed yet
  std::deque<Gap> gaps_;     ///< closed ones that no sample has passed yet
  std::unordered_map<NodeIndex, Idle> idle_;
};

// When a session did not listen.

/// Pauses of one session in order of time; the oldest of very many are forgotten.
class PauseList {
public:
  void pause(int64_t now_ns);
  void resume(int64_t now_ns);
  /// How much of the span was paused.
  int64_t within(int64_t start_ns, int64_t end_ns) const {
    bool is_clear = pauses_.empty() || start_ns >= pauses_.back().end_ns;
    return is_clear ? 0 : sum_within(start_ns, end_ns);
  }

private:
  struct Pause {
    int64_t start_ns;
    int64_t end_ns; ///< INT64_MAX while it lasts
  };
  static constexpr size_t kMost = 4096;
  int64_t sum_within(int64_t start_ns, int64_t end_ns) const;

  std::vector<Pause> pauses_;
};

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
