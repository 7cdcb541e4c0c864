// The call-path tree of one session and phase: nodes, variants and their metric columns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "calltree/metric_columns.h"
#include "record/record.h"
#include "support/name.h"

namespace proton {

// How busy devices were for a profile and for each of its top-level scopes.

/// From the host's launch call to the start on the device. Two-digit log buckets: 8 per octave.
struct LaunchLatency {
  uint64_t count = 0;
  uint64_t clamped = 0; ///< not counted: negative, or over an hour
  int64_t sum_ns = 0, min_ns = 0, max_ns = 0;
  std::vector<uint32_t> buckets; ///< by `bucket`; shorter when the tail is empty

  /// Returns whether it counts: the clocks of host and device may disagree.
  bool add(int64_t latency_ns);
  void merge(const LaunchLatency &other);
  /// Below 8 each value has a bucket; above, the leading bit and the three bits behind it choose
  /// one.
  static uint32_t bucket(int64_t latency_ns) {
    auto value = static_cast<uint64_t>(latency_ns);
    if (value < 8)
      return static_cast<uint32_t>(value);
    auto octave = static_cast<uint32_t>(63 - __builtin_clzll(value));
    return (octave - 2) * 8 + static_cast<uint32_t>((value >> (octave - 3)) & 7);
  }
};

/// Gaps in which a device had nothing to do.
struct IdleTime {
  static constexpr int64_t kLongNs = 1'000'000; ///< no late launch: the host did something else

  int64_t all_ns = 0;
  int64_t long_ns = 0; ///< part of it in gaps of kLongNs and more

  void add_gap(int64_t gap_ns) {
    all_ns += gap_ns;
    long_ns += gap_ns >= kLongNs ? gap_ns : 0;
  }
  void add(const IdleTime &other) {
    all_ns += other.all_ns;
    long_ns += other.long_ns;
  }
};

/// One device's time, as seen by the whole profile or one top-level scope.
struct DeviceUse {
  uint32_t node = 0;      ///< the top-level scope; the root: the whole profile
  int32_t device = -1;    ///< index into the DeviceTable
  int64_t busy_ns = 0;    ///< something ran
  IdleTime idle;          ///< nothing ran, and the next thing to run was this scope's
  int64_t waiting_ns = 0; ///< part of busy_ns: nothing ran but kernels that wait for others
  int64_t uncertain_ns =
      0; ///< upper bound of more busy time: these records came too late to be placed
  LaunchLatency latency;
};

// Names of what samples of the host add to a tree.

/// The row below the root for host time outside of recorded work, with Python frames below it.
inline constexpr const char *kNotRecorded = "<not recorded>";
/// Time of the main thread; the root's is that of the run.
inline constexpr const char *kHostWall = "host_wall (ns)";
/// The part of it in which no device worked.
inline constexpr const char *kIdle = "idle (ns)";
/// Time of the other threads, summed.
inline constexpr const char *kOtherThreads = "other_threads (ns)";

inline constexpr NodeIndex kRootNode = 0;
inline constexpr NodeIndex kNoNode = 0xffffffffu;
inline constexpr int32_t kNone = -1;
inline constexpr uint32_t kMaxVariantsPerPath = 64;

/// Owned form of VariantRecord.
struct Variant {
  uint64_t code_hash = 0; ///< 0: unknown
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t shared_bytes = 0;
  std::string signature; ///< "other" once a path has more than kMaxVariantsPerPath
  uint32_t registers = 0;
  int32_t local_bytes = -1; ///< of a thread; -1: unknown
  std::string raw_name;     ///< empty: as the kernel is shown
  std::string config;       ///< what an autotuner chose; empty: unknown

  bool operator==(const Variant &other) const = default;
};

struct TreeNode {
  NodeIndex parent = kNoNode;
  NodeIndex first_child = kNoNode;
  NodeIndex last_child = kNoNode;
  NodeIndex next_sibling = kNoNode; ///< siblings stand in order of insertion
  Name name;
  FrameKind kind = FrameKind::kUnknown;
  int32_t device = kNone;  ///< index into the DeviceTable
  int32_t variant = kNone; ///< index into variants()
};

/// Kernel leaves that differ only in variant are siblings with the same name.
/// Not synchronised: the aggregator's lock guards it.
class CallPathTree {
public:
  CallPathTree();

  /// Returns the child, which is made if it is new. Without device and variant, a kernel is the
  /// first leaf of that name: metrics of a launch come before the record that names its device.
  NodeIndex child(NodeIndex parent, const Name &name, FrameKind kind, int32_t device = kNone,
                  int32_t variant = kNone);
  /// The first kernel leaf of that name with these shapes, which metrics of a launch come to, too.
  NodeIndex kernel(NodeIndex parent, const Name &name, std::string_view shapes);
  /// Sets the device of a node that is not a kernel leaf.
  void set_device(NodeIndex node, int32_t device) { nodes_[node].device = device; }
  /// Position of the variant for a leaf called `name` below `parent`. Limits the variants per path.
  int32_t variant(NodeIndex parent, const Name &name, const VariantRecord &record);

  /// A copy with what writers read, without the tables that only insertion needs.
  CallPathTree copy_for_writing() const;

  const std::vector<TreeNode> &nodes() const { return nodes_; }
  const std::vector<Variant> &variants() const { return variants_; }
  MetricColumns &metrics() { return metrics_; }
  const MetricColumns &metrics() const { return metrics_; }
  void set_device_use(std::vector<DeviceUse> uses) { device_use_ = std::move(uses); }
  /// Use of devices by the whole tree and by each top-level scope; empty if it is not known.
  const std::vector<DeviceUse> &device_use() const { return device_use_; }

  /// Pre-order walk without recursion; children in order of insertion.
  /// `visitor.enter(NodeIndex, depth)` and `visitor.leave(NodeIndex, depth)`; root has depth 0.
  template <typename Visitor> void walk(Visitor &visitor) const {
    NodeIndex node = kRootNode;
    uint32_t depth = 0;
    for (;;) {
      visitor.enter(node, depth);
      if (nodes_[node].first_child != kNoNode) {
        node = nodes_[node].first_child;
        ++depth;
        continue;
      }
      visitor.leave(node, depth);
      while (node != kRootNode && nodes_[node].next_sibling == kNoNode) {
        node = nodes_[node].parent;
        visitor.leave(node, --depth);
      }
      if (node == kRootNode)
        return;
      node = nodes_[node].next_sibling;
    }
  }

private:
  struct ChildKey {
    NodeIndex parent;
    const void *name;
    uint64_t rest; ///< kind, device and variant
    bool operator==(const ChildKey &other) const = default;
  };
  struct ChildKeyHash {
    size_t operator()(const ChildKey &key) const noexcept;
  };
  struct Leaves {
    NodeIndex first = kNoNode;  ///< first kernel leaf of that name
    std::vector<int32_t> known; ///< positions in variants_
  };

  NodeIndex append(NodeIndex parent, const Name &name, FrameKind kind, int32_t device,
                   int32_t variant);

  std::vector<TreeNode> nodes_;
  std::unordered_map<ChildKey, NodeIndex, ChildKeyHash> children_;
  std::vector<Variant> variants_;
  std::unordered_map<ChildKey, Leaves, ChildKeyHash>
      leaves_; ///< kernels; key.rest: by shapes, 0: all
  MetricColumns metrics_;
  std::vector<DeviceUse> device_use_;
};

} // namespace proton
