// Packets of one sequence of a Perfetto file, and the strings that they name by number.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "support/name.h"
#include "writer/bytes/proto_bytes.h"
#include "writer/timeline/event_nodes.h"

/// Numbers of Perfetto's trace format (perfetto.protos.Trace) that we write.
namespace proton::perfetto {

// Trace.
inline constexpr uint32_t kPacket = 1;

// TracePacket.
inline constexpr uint32_t kClockSnapshot = 6;
inline constexpr uint32_t kTimestamp = 8;
inline constexpr uint32_t kSequence = 10; // trusted_packet_sequence_id
inline constexpr uint32_t kTrackEvent = 11;
inline constexpr uint32_t kInternedData = 12;
inline constexpr uint32_t kSequenceFlags = 13;
inline constexpr uint32_t kTimestampClock = 58; // also of TracePacketDefaults
inline constexpr uint32_t kPacketDefaults = 59;
inline constexpr uint32_t kTrackDescriptor = 60;
inline constexpr uint32_t kProfile = 1984;   // our own, of those for extensions
inline constexpr uint64_t kStateCleared = 1; // of kSequenceFlags
inline constexpr uint64_t kNeedsState = 2;

// ClockSnapshot and its Clock.
inline constexpr uint32_t kClocks = 1;
inline constexpr uint32_t kClockId = 1;
inline constexpr uint32_t kClockTime = 2;
inline constexpr uint32_t kIsIncremental = 3;
inline constexpr uint64_t kRealTime = 1;   // clocks
inline constexpr uint64_t kBootTime = 6;   // that of the whole trace
inline constexpr uint64_t kStepClock = 64; // the first that belongs to one sequence

// InternedData, and each of its entries.
inline constexpr uint32_t kCategories = 1;
inline constexpr uint32_t kEventNames = 2;
inline constexpr uint32_t kAnnotationNames = 3;
inline constexpr uint32_t kAnnotationTexts = 29;
inline constexpr uint32_t kInternedId = 1;
inline constexpr uint32_t kInternedText = 2;

// TrackDescriptor, with its process, thread and counter.
inline constexpr uint32_t kUuid = 1;
inline constexpr uint32_t kTrackName = 2;
inline constexpr uint32_t kProcess = 3;
inline constexpr uint32_t kThread = 4;
inline constexpr uint32_t kParentUuid = 5;
inline constexpr uint32_t kCounter = 8;
inline constexpr uint32_t kChildOrdering = 11;
inline constexpr uint32_t kSiblingRank = 12;
inline constexpr uint64_t kByRank = 3; // of kChildOrdering
inline constexpr uint32_t kPid = 1;    // of processes and threads
inline constexpr uint32_t kProcessName = 6;
inline constexpr uint32_t kTid = 2;
inline constexpr uint32_t kThreadName = 5;
inline constexpr uint32_t kUnitName = 6;

// Our profile: bytes of it that come later, and a piece.
inline constexpr uint32_t kProfileRest = 1;
inline constexpr uint32_t kProfilePiece = 2;

// TrackEvent.
inline constexpr uint32_t kCategory = 3;
inline constexpr uint32_t kAnnotation = 4;
inline constexpr uint32_t kType = 9;
inline constexpr uint32_t kNameId = 10;
inline constexpr uint32_t kTrackUuid = 11;
inline constexpr uint32_t kNameText = 23;
inline constexpr uint32_t kCounterReal = 44;
inline constexpr uint32_t kFlowIds = 47;
inline constexpr uint64_t kSliceBegin = 1; // of kType
inline constexpr uint64_t kSliceEnd = 2;
inline constexpr uint64_t kInstant = 3;
inline constexpr uint64_t kCounterReading = 4;

// DebugAnnotation.
inline constexpr uint32_t kKeyId = 1;
inline constexpr uint32_t kBool = 2;
inline constexpr uint32_t kUnsigned = 3;
inline constexpr uint32_t kSigned = 4;
inline constexpr uint32_t kText = 6;
inline constexpr uint32_t kKeyText = 10;
inline constexpr uint32_t kEntries = 11; // of a dictionary
inline constexpr uint32_t kTextId = 17;

} // namespace proton::perfetto

namespace proton {

/// Strings that the file holds once. Numbers count from 1 in each kind. Those that are new since
/// `take_new` must stand in the file before the packet that uses them.
class PerfettoStrings {
public:
  explicit PerfettoStrings(const EventNodes &nodes) : nodes_(nodes) {}

  uint32_t event_name(const Name &name);
  /// Of the call that launched what is so called.
  uint32_t launch_name(const Name &name);
  uint32_t annotation_name(const Name &name);
  uint32_t annotation_name(std::string_view name) { return annotation_name(Name(name)); }
  /// The call path of a node, as a value of annotations.
  uint32_t call_stack(uint32_t node);
  void add_category(uint32_t iid, std::string_view name);

  bool has_new() const { return !new_.empty(); }
  /// The fields of an InternedData.
  std::string take_new();

private:
  struct NameHash {
    size_t operator()(const Name &name) const noexcept {
      return std::hash<const void *>()(name.key());
    }
  };
  using Numbers = std::unordered_map<Name, uint32_t, NameHash>;

  uint32_t intern(Numbers &numbers, uint32_t field, const Name &name);
  void add(uint32_t field, uint32_t iid, std::string_view text);

  const EventNodes &nodes_;
  Numbers event_names_;
  Numbers launch_names_;
  Numbers annotation_names_;
  uint32_t event_name_count_ = 0;                      ///< of events and launches
  std::unordered_map<uint32_t, uint32_t> call_stacks_; ///< by node
  std::string new_;
};

/// Times are steps from packet to packet, so that they are short; the first packet says from when.
/// They stand at the end of packets, which compress better so.
class PerfettoPackets {
public:
  /// Begins the sequence. `start_ns` is unix time.
  void begin(uint32_t sequence, int64_t start_ns);
  /// Events that name no track stand on this one from now on.
  void stand_on(uint64_t track);
  /// An event with encoded fields of a TrackEvent in three parts.
  void event(int64_t unix_ns, std::string_view head, std::string_view what, std::string_view more);
  /// Those that are new, before the packets that name them.
  void strings(PerfettoStrings &strings);
  /// A packet with one field, a message, that is encoded already.
  void message(uint32_t field, std::string_view fields);

  size_t size() const { return raw_.size(); }
  const std::string &bytes() const { return raw_; }
  void clear() { raw_.clear(); }
  int64_t newest_ns() const { return newest_ns_; } ///< unix time

private:
  void defaults(uint64_t track);

  std::string raw_;
  ProtoBytes proto_{raw_};
  std::string sequence_;  ///< the field
  uint64_t clock_ns_ = 0; ///< time of the newest packet that has one
  int64_t newest_ns_ = 0;
  uint64_t track_ = 0; ///< of events that name none
};

} // namespace proton
