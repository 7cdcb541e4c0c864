// Tracks of a timeline and the lanes of each: what overlaps on one track stands side by side.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace proton {

enum class TrackKind : uint8_t {
  kThread, ///< slices nest
  kStream, ///< slices stand one after another
  kGraph,  ///< what graphs ran on a stream; slices nest
};

struct LaneId {
  TrackKind kind = TrackKind::kThread;
  int32_t device = -1;
  uint64_t number = 0; ///< of the thread or the stream
  uint32_t line = 0;   ///< 0: the track itself; others stand beside it
};

/// Slices that were handed out stay where they are; so a late one that crosses them goes to another
/// lane.
class EventLanes {
public:
  static constexpr uint32_t kMaxLines = 64; ///< of one track

  /// The lane of a slice that begins now: those that ended before were told by `close`. Slices
  /// come by ascending start, the longer one first, until `settle`; nothing when no lane has room.
  std::optional<uint32_t> open(TrackKind kind, int32_t device, uint32_t number, int64_t start_ns,
                               int64_t end_ns);
  /// The innermost open slice of the lane ended.
  void close(uint32_t lane) { lanes_[lane].open_ends.pop_back(); }
  /// All slices ended; earlier ones may come now.
  void settle();

  const LaneId &id(uint32_t lane) const { return lanes_[lane].id; }
  uint32_t size() const { return static_cast<uint32_t>(lanes_.size()); }

private:
  struct Slice {
    int64_t start_ns = 0;
    int64_t end_ns = 0;
  };
  struct Lane {
    LaneId id;
    int64_t free_from_ns = INT64_MIN; ///< nothing ends later
    int64_t settled_ns = INT64_MIN;   ///< as `free_from_ns` when all was settled last
    std::vector<int64_t> open_ends;   ///< outermost first
  };
  struct Key {
    uint64_t place = 0;
    TrackKind kind = TrackKind::kThread;
    bool operator==(const Key &other) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key &key) const noexcept {
      return static_cast<size_t>((key.place * 4 + static_cast<uint64_t>(key.kind)) *
                                 0x9E3779B97F4A7C15u);
    }
  };

  std::vector<uint32_t> &track(TrackKind kind, int32_t device, uint32_t number);
  static bool has_room(const Lane &lane, int64_t start_ns, int64_t end_ns);

  std::vector<Lane> lanes_;
  std::unordered_map<Key, std::vector<uint32_t>, KeyHash> tracks_;
};

} // namespace proton
