// Launches of graphs that are under way: one launch, many records.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "calltree/metric_columns.h"
#include "record/record.h"

namespace proton {

// Values that work of a graph leaves in host memory, one set per launch of the graph.

/// A ring that a device appends to and the host takes from, in 64-bit words:
///   count     sets that the device appended, also those that found no room
///   taken     sets that the host is done with
///   capacity  entries of: number of the set + 1, then its values
/// A set for which there is no room is left out: its entry keeps another number. Launches of one
/// executable graph follow one another, so that sets come in the order of launches. The memory
/// stays for the life of the process, since a graph may run for as long. Not synchronised: the
/// aggregator's lock guards it.
class DeviceValues {
public:
  static constexpr uint32_t kMaxSize = 4096; ///< values of a set

  /// `words` is zeroed memory of `bytes(size)`.
  DeviceValues(uint64_t *words, uint32_t size, bool is_float, bool is_vector);
  /// Whether any ring exists: rings fill while no records of launches are read. [any thread]
  static bool exist() noexcept { return exist_.load(std::memory_order_relaxed); }
  static uint32_t capacity_of(uint32_t size);
  static size_t bytes(uint32_t size);

  uint64_t address() const { return reinterpret_cast<uint64_t>(words_); }
  uint32_t size() const { return size_; }
  uint32_t capacity() const { return capacity_; }

  /// Reads what has come, to make room.
  void pull();
  /// Takes the set of the oldest launch that has not got one; nullopt if it is lost.
  std::optional<MetricValue> take();
  /// Drops what has come: it belongs to launches that were not seen.
  void skip();

private:
  static constexpr size_t kHeaderWords = 2;
  std::optional<MetricValue> read(uint64_t number) const;
  static std::atomic<bool> exist_;

  uint64_t *words_;
  uint32_t size_;
  uint32_t capacity_;
  bool is_float_;
  bool is_vector_;       ///< also with one value
  uint64_t next_ = 0;    ///< set that is read next
  uint64_t overdue_ = 0; ///< sets that were to be taken before they came
  std::deque<std::optional<MetricValue>> came_;
};

// Where nodes of graphs were captured, for as long as a graph or a launch of it needs that.

/// A user metric as it came from Python: a value, or the place where a device leaves one for each
/// launch of the graph that is captured.
struct UserMetric {
  UserMetric(const MetricName &metric_, MetricValue value_,
             std::shared_ptr<DeviceValues> on_device_ = nullptr)
      : metric(&metric_), value(std::move(value_)), on_device(std::move(on_device_)) {}

  const MetricName *metric;
  MetricValue value;
  std::shared_ptr<DeviceValues> on_device; ///< null: `value`
};

/// One place of capture, or the values that were added at one.
struct CapturedAt {
  Capture at;
  std::vector<uint32_t> sessions; ///< generations of those that were active
  std::vector<UserMetric> metrics;
  uint64_t references = 0;

  bool is_seen_by(uint32_t session) const;
};

/// Numbers are not used again while the process lives, so that a cache may be keyed by them. Not
/// synchronised: the aggregator's lock guards it.
class CaptureStore {
public:
  /// The place, made when it is new, with one reference more.
  CaptureId keep(const Capture &at, const std::vector<uint32_t> &sessions);
  /// Values, with one reference.
  CaptureId keep(const Capture &at, const std::vector<uint32_t> &sessions,
                 std::vector<UserMetric> metrics);
  void keep(CaptureId id);
  void give_back(CaptureId id);
  /// Null for 0.
  const CapturedAt *find(CaptureId id) const;
  /// Contexts that must not be freed.
  void append_ids(std::vector<ContextId> &ids) const;
  template <typename Visit> void for_each_on_device(Visit &&visit) const {
    for (const auto &[id, place] : places_)
      for (const UserMetric &metric : place.metrics)
        if (metric.on_device)
          visit(*metric.on_device);
  }
  size_t size() const { return places_.size(); }

private:
  struct Hash {
    size_t operator()(const Capture &at) const noexcept;
  };
  struct Same {
    bool operator()(const Capture &left, const Capture &right) const noexcept;
  };

  std::unordered_map<CaptureId, CapturedAt> places_;
  std::unordered_map<Capture, CaptureId, Hash, Same> known_; ///< places without metrics
  CaptureId next_ = 1;
};

/// A launch whose records are not all there yet, or to which more may come.
struct OpenGraph {
  LaunchRecord launch;
  struct LayoutEntry *layout = nullptr;
  uint32_t missing = 0;     ///< records of kernels that are still to come; unless it is unknown
  bool has_records = false; ///< some came
  bool is_complete = false; ///< every kernel was recorded; records of copies may follow
  bool is_counted = false;  ///< as recorded
};

struct LayoutEntry {
  GraphLayout layout;
  uint32_t kernels = 0;         ///< records that each launch has
  uint64_t launches = 0;        ///< that are open
  bool is_retired = false;      ///< goes with its last open launch
  size_t newest = 0;            ///< position of the node found last: records come in order
  std::deque<uint64_t> waiting; ///< launches with records, oldest first, of inexact layouts

  const GraphNode *find(uint64_t node);
};

/// Layouts and open launches. Not synchronised: the aggregator's lock guards it.
class GraphLaunches {
public:
  explicit GraphLaunches(CaptureStore &captures) : captures_(captures) {}

  /// 0 if there are too many.
  LayoutId add(GraphLayout layout);
  void retire(LayoutId id);

  /// Opens a launch; the older one of this correlation id, if there is one, must be closed before.
  OpenGraph &open(const LaunchRecord &launch);
  OpenGraph *find(uint64_t correlation_id);
  /// Notes a record of the node and returns where it was captured: 0 where that is unknown.
  CaptureId note(OpenGraph &open, uint64_t node, bool is_kernel);
  /// The oldest launch that need not wait for more records, which leaves the list; 0: none.
  uint64_t take_settled(OpenGraph &open);
  /// The same among those of retired layouts.
  uint64_t take_settled_retired();
  void close(uint64_t correlation_id);
  template <typename Visit> void for_each(Visit &&visit) {
    for (auto &[id, open] : open_)
      visit(open);
  }
  size_t size() const { return open_.size(); }
  size_t layout_count() const { return layouts_.size(); }

private:
  static constexpr LayoutId kMaxLayouts = 1u << 24;
  /// So many later launches of a graph with records of their own: its older records are all there.
  static constexpr size_t kWaiting = 64;
  /// More than the driver lets wait for a device.
  static constexpr size_t kMaxQueued = 4096;
  static uint64_t pop(std::deque<uint64_t> &ids);

  LayoutEntry &entry(LayoutId id);
  void erase_if_unused(LayoutId id, LayoutEntry &entry);

  CaptureStore &captures_;
  std::unordered_map<LayoutId, std::unique_ptr<LayoutEntry>> layouts_;
  std::deque<uint64_t> retired_; ///< waiting launches whose graph is gone, oldest first
  LayoutEntry unknown_;          ///< of launches whose layout is unknown
  LayoutId next_ = 1;
  std::unordered_map<uint64_t, OpenGraph> open_;
};

} // namespace proton
