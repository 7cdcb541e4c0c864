// Tracks of a timeline and their lanes: slices of a track that overlap go side by side.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

namespace proton {

enum class TrackKind : uint8_t {
  kThread,    ///< slices nest
  kStream,    ///< slices stand one after another
  kGraph,     ///< what graphs ran on a stream; slices nest
  kProcessor, ///< programs of kernels, one after another
  kWarp,      ///< scopes inside kernels; slices nest
};

struct TrackId {
  TrackKind kind = TrackKind::kThread;
  int32_t device = -1;
  uint64_t number = 0; ///< of the thread, the stream or the processor; see `warp_number`
  bool operator==(const TrackId &other) const = default;
};

constexpr size_t hash_of(const TrackId &track) noexcept {
  uint64_t bits = track.number * 8 + static_cast<uint64_t>(track.kind);
  bits ^= uint64_t{static_cast<uint32_t>(track.device)} << 40;
  return static_cast<size_t>(bits * 0x9E3779B97F4A7C15u);
}

/// The number of the track of a warp of a processor.
constexpr uint64_t warp_number(uint32_t processor, uint16_t warp) {
  return uint64_t{processor} << 16 | warp;
}
constexpr uint64_t processor_of(uint64_t warp_number) { return warp_number >> 16; }
constexpr uint64_t warp_of(uint64_t warp_number) { return warp_number & 0xFFFF; }

struct SliceTimes {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

/// The newest slices of a lane that were handed out, by time.
/// They are kept in blocks that know their span, so that a late slice is compared with few.
class SettledSlices {
public:
  static constexpr size_t kBlock = 64;
  static constexpr size_t kMaxBlocks = 32;

  void add(const SliceTimes &slice) {
    if (blocks_.empty() || blocks_.back().size == kBlock)
      blocks_.emplace_back();
    Block &block = blocks_.back();
    block.slices[block.size++] = slice;
    block.start_ns = std::min(block.start_ns, slice.start_ns);
    block.end_ns = std::max(block.end_ns, slice.end_ns);
    if (blocks_.size() <= kMaxBlocks)
      return;
    forgotten_ns_ = std::max(forgotten_ns_, blocks_.front().end_ns);
    blocks_.pop_front();
  }

  /// Whether `is_it` holds for a slice that ends after `start_ns` and begins at `end_ns` or before.
  /// May also look at others.
  template <typename IsIt> bool any_near(int64_t start_ns, int64_t end_ns, IsIt is_it) const {
    return std::any_of(blocks_.begin(), blocks_.end(), [&](const Block &block) {
      return block.end_ns > start_ns && block.start_ns <= end_ns &&
             std::any_of(block.slices.begin(), block.slices.begin() + block.size, is_it);
    });
  }

  /// Newest end of a slice that was dropped.
  int64_t forgotten_ns() const { return forgotten_ns_; }

private:
  struct Block {
    int64_t start_ns = INT64_MAX; ///< of the first
    int64_t end_ns = INT64_MIN;   ///< newest
    uint32_t size = 0;
    std::array<SliceTimes, kBlock> slices;
  };

  std::deque<Block> blocks_;
  int64_t forgotten_ns_ = INT64_MIN;
};

struct LaneId {
  TrackId track;
  uint32_t line = 0; ///< 0: the track itself; others stand beside it
};

/// Slices that were handed out keep their place: a later slice goes to another lane if it would
/// cross them, or if viewers would confuse its ends with theirs.
class EventLanes {
public:
  static constexpr uint32_t kMaxLines = 64; ///< of one track
  static constexpr int64_t kMaxShiftNs = 16;

  struct Place {
    uint32_t lane = 0;
    /// When the slice begins: a little earlier than requested if it contains a settled slice that
    /// began at the same time.
    int64_t start_ns = 0;
  };

  /// Where a slice goes; empty if no lane has room. Slices come by ascending start, the longer one
  /// first, until `settle`.
  std::optional<Place> place(const TrackId &track, int64_t start_ns, int64_t end_ns);
  /// All placed slices are handed out now; earlier slices may come afterwards.
  void settle();

  const LaneId &id(uint32_t lane) const { return lanes_[lane].id; }
  uint32_t size() const { return static_cast<uint32_t>(lanes_.size()); }

private:
  struct Lane {
    LaneId id;
    std::vector<SliceTimes> open;   ///< outermost first
    int64_t closed_ns = INT64_MIN;  ///< newest end since `settle`
    std::vector<SliceTimes> placed; ///< since `settle`
    SettledSlices recent;
    int64_t settled_ns = INT64_MIN; ///< newest end of settled slices
  };
  struct TrackHash {
    size_t operator()(const TrackId &track) const noexcept { return hash_of(track); }
  };

  static bool nests(const Lane &lane);
  static bool has_room(Lane &lane, int64_t &start_ns, int64_t end_ns);
  static bool has_gap(const Lane &lane, int64_t start_ns, int64_t end_ns);
  static bool nests_with_settled(const Lane &lane, int64_t &start_ns, int64_t end_ns);
  uint32_t add_line(const TrackId &track, std::vector<uint32_t> &lines);

  std::vector<Lane> lanes_;
  std::unordered_map<TrackId, std::vector<uint32_t>, TrackHash> tracks_;
};

} // namespace proton
