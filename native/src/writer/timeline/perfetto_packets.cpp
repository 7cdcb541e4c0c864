#include "writer/timeline/perfetto_packets.h"

#include <algorithm>

namespace proton {

using namespace perfetto;

// The files of other processes may follow, with sequences and clocks of their own.
void PerfettoPackets::begin(uint32_t sequence, int64_t start_ns) {
  ProtoBytes(sequence_).count(kSequence, sequence);
  clock_ns_ = static_cast<uint64_t>(start_ns);
  newest_ns_ = start_ns;
  size_t packet = proto_.open(kPacket);
  proto_.encoded(sequence_);
  proto_.count(kSequenceFlags, kStateCleared);
  defaults(0);
  size_t snapshot = proto_.open(kClockSnapshot);
  for (uint64_t clock : {kBootTime, kRealTime, kStepClock}) {
    size_t entry = proto_.open(kClocks);
    proto_.count(kClockId, clock);
    proto_.count(kClockTime, clock_ns_);
    if (clock == kStepClock)
      proto_.count(kIsIncremental, 1);
    proto_.close(entry);
  }
  proto_.close(snapshot);
  proto_.close(packet);
}

void PerfettoPackets::defaults(uint64_t track) {
  size_t defaults = proto_.open(kPacketDefaults);
  proto_.count(kTimestampClock, kStepClock);
  if (track != 0) {
    size_t event = proto_.open(kTrackEvent);
    proto_.count(kTrackUuid, track);
    proto_.close(event);
  }
  proto_.close(defaults);
}

void PerfettoPackets::stand_on(uint64_t track) {
  if (track == track_)
    return;
  track_ = track;
  size_t packet = proto_.open(kPacket);
  proto_.encoded(sequence_);
  defaults(track);
  proto_.close(packet);
}

void PerfettoPackets::event(int64_t unix_ns, std::string_view head, std::string_view what,
                            std::string_view more) {
  uint64_t step_ns = static_cast<uint64_t>(unix_ns) - clock_ns_; // modulo 2^64 where it goes back
  clock_ns_ = static_cast<uint64_t>(unix_ns);
  newest_ns_ = std::max(newest_ns_, unix_ns);
  size_t event_size = head.size() + what.size() + more.size();
  size_t size = sequence_.size() + 1 + ProtoBytes::count_size(event_size) + event_size + 1 +
                ProtoBytes::count_size(step_ns);
  proto_.sized(kPacket, size);
  proto_.encoded(sequence_);
  proto_.sized(kTrackEvent, event_size);
  proto_.encoded(head);
  proto_.encoded(what);
  proto_.encoded(more);
  proto_.count(kTimestamp, step_ns);
}

void PerfettoPackets::message(uint32_t field, std::string_view fields) {
  size_t packet = proto_.open(kPacket);
  proto_.encoded(sequence_);
  proto_.text(field, fields);
  proto_.close(packet);
}

void PerfettoPackets::strings(PerfettoStrings &strings) {
  if (strings.has_new())
    message(kInternedData, strings.take_new());
}

} // namespace proton
