// Numbers of Perfetto's trace format (perfetto.protos.Trace) that we write.
#pragma once

#include <cstdint>

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
