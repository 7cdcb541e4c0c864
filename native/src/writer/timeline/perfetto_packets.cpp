#include "writer/timeline/perfetto_packets.h"

#include <algorithm>
#include <utility>

#include "writer/bytes/utf8_text.h"

namespace proton {

using namespace perfetto;

void PerfettoStrings::add(uint32_t field, uint32_t iid, std::string_view text) {
  std::string scratch;
  ProtoBytes proto(new_);
  size_t entry = proto.open(field);
  proto.count(kInternedId, iid);
  proto.text(kInternedText, valid_utf8(text, scratch));
  proto.close(entry);
}

uint32_t PerfettoStrings::event_name(const Name &name) {
  auto [found, is_new] = event_names_.try_emplace(name, event_name_count_ + 1);
  if (is_new)
    add(kEventNames, ++event_name_count_, name.text());
  return found->second;
}

uint32_t PerfettoStrings::launch_name(const Name &name) {
  auto [found, is_new] = launch_names_.try_emplace(name, event_name_count_ + 1);
  if (is_new)
    add(kEventNames, ++event_name_count_, "launch " + std::string(name.text()));
  return found->second;
}

uint32_t PerfettoStrings::annotation_name(const Name &name) {
  auto [found, is_new] =
      annotation_names_.try_emplace(name, static_cast<uint32_t>(annotation_names_.size() + 1));
  if (is_new)
    add(kAnnotationNames, found->second, name.text());
  return found->second;
}

uint32_t PerfettoStrings::call_stack(uint32_t node) {
  auto [found, is_new] =
      call_stacks_.try_emplace(node, static_cast<uint32_t>(call_stacks_.size() + 1));
  if (is_new)
    add(kAnnotationTexts, found->second, nodes_.call_stack(node));
  return found->second;
}

void PerfettoStrings::add_category(uint32_t iid, std::string_view name) {
  add(kCategories, iid, name);
}

std::string PerfettoStrings::take_new() { return std::exchange(new_, std::string()); }

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
