// Turns batches of events into the bytes of a timeline format, piece by piece.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "record/timeline_event.h"

namespace proton {

enum class TraceFormat : uint8_t { kChrome, kPerfetto };

/// What a timeline says of its process; known when it begins.
struct TraceFacts {
  int64_t unix_offset_ns = 0; ///< unix time less CLOCK_MONOTONIC
  int64_t start_ns = 0;       ///< CLOCK_MONOTONIC: no event begins before; times may count from it
  int64_t process_id = 0;
  std::string process_name;
  std::string host;
  int32_t rank = -1; ///< -1: not one of several
  int32_t local_rank = -1;
  int32_t world_size = -1;
  bool upstream_shape = false; ///< Chrome's format shows what upstream would
};

/// What is known at the end.
struct TraceEnd {
  std::function<std::string_view()> profile; ///< encodes the tree, as `.proton`; empty: none
  std::map<std::string, uint64_t> dropped;   ///< lost records by reason
  int64_t clock_drift_ns = 0; ///< between the device's clock and the host's, over the session
};

/// Of a profile, in one packet or event: viewers take them in one by one.
inline constexpr size_t kProfilePieceBytes = size_t{1} << 20;

/// Takes bytes that are there away.
using Spill = std::function<void(std::string &)>;

/// One file. Bytes are appended to `out`; memory is bounded by the number of nodes, threads and
/// tracks. Throws std::bad_alloc only. [one thread at a time]
class TraceEncoder {
public:
  virtual ~TraceEncoder() = default;
  /// `spill` may be called with `out` while more is appended, whenever its bytes, with `tail`, are
  /// a whole file: it takes some of them away. Its exceptions come through.
  virtual void spill_to(Spill) {}
  virtual void begin(const TraceFacts &facts, std::string &out) = 0;
  virtual void add(const EventBatch &batch, std::string &out) = 0;
  /// Hands out what is held back, so that the bytes so far, with `tail`, are a whole file.
  virtual void flush(std::string &out) = 0;
  /// What makes a whole file of the bytes after a `flush`; later bytes take its place.
  virtual std::string_view tail() const = 0;
  /// The last bytes; the file is whole then, without `tail`.
  virtual void end(const TraceEnd &end, std::string &out) = 0;
};

/// Timelines in Chrome's trace format, in the form of upstream Proton 3.9 with more arguments.
std::unique_ptr<TraceEncoder> make_chrome_encoder();
/// Timelines in Perfetto's own format (TrackEvent), in gzip members.
std::unique_ptr<TraceEncoder> make_perfetto_encoder();

inline std::unique_ptr<TraceEncoder> make_trace_encoder(TraceFormat format) {
  return format == TraceFormat::kPerfetto ? make_perfetto_encoder() : make_chrome_encoder();
}

/// What the name of a counter says: "SM clock (MHz)" has the unit "MHz".
/// The unit is empty if the name has none; the quantity is then the whole name.
inline std::pair<std::string_view, std::string_view> quantity_and_unit(std::string_view name) {
  size_t open = name.rfind(" (");
  if (open == std::string_view::npos || !name.ends_with(')'))
    return {name, {}};
  return {name.substr(0, open), name.substr(open + 2, name.size() - open - 3)};
}

} // namespace proton
