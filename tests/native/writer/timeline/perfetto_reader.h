// What Perfetto's engine makes of a file, for tests: slices with their parents, tracks and arrows.
//
// Packets are sorted by time, those of one time in their order in the file; an end closes what
// was begun last on its track.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "writer/bytes/proto_reader.h"
#include "writer/timeline/gzip_members.h"
#include "writer/timeline/perfetto_contents.h"

namespace perfetto_file {

class Reader {
public:
  Trace read(const std::string &packed) {
    raw_ = gzip::unpack(packed);
    proto::Message file(raw_);
    for (const proto::Field &field : file.all(1))
      add(proto::Message(field.bytes));
    std::stable_sort(events_.begin(), events_.end(),
                     [](const Event &left, const Event &right) { return left.at < right.at; });
    for (const Event &event : events_)
      play(event);
    for (const auto &[track, open] : open_)
      trace_.errors += open.size();
    return std::move(trace_);
  }

private:
  struct Sequence {
    int64_t clock_ns = 0;
    bool has_state = false;
    uint64_t track = 0;                                          ///< of events that name none
    std::map<uint32_t, std::map<uint64_t, std::string>> strings; ///< by field of InternedData
  };
  struct Event {
    int64_t at = 0;
    uint64_t type = 0;
    Slice slice;
    double value = 0;
  };

  void add(const proto::Message &packet) {
    Sequence &sequence = sequences_[packet.count(10)];
    if (packet.count(13) & 1)
      sequence = {.clock_ns = 0, .has_state = true, .track = 0, .strings = {}};
    if (!sequence.has_state || packet.count(10) == 0)
      throw std::runtime_error("a packet stands before the state of its sequence");
    for (const proto::Field &clock : packet.message(6).all(1))
      if (proto::Message entry(clock.bytes); entry.count(1) == 64)
        sequence.clock_ns = static_cast<int64_t>(entry.count(2));
    for (uint32_t field : {1u, 2u, 3u, 29u})
      for (const proto::Field &interned : packet.message(12).all(field)) {
        proto::Message entry(interned.bytes);
        sequence.strings[field][entry.count(1)] = entry.text(2);
      }
    if (packet.has(59))
      sequence.track = packet.message(59).message(11).count(11);
    if (packet.has(60))
      describe(packet.message(60));
    if (packet.has(11))
      add_event(packet, sequence);
  }

  void describe(const proto::Message &descriptor) {
    Track &track = trace_.tracks[descriptor.count(1)];
    track.uuid = descriptor.count(1);
    track.parent = descriptor.count(5);
    track.name = descriptor.text(2);
    if (descriptor.has(3)) {
      track.name = descriptor.message(3).text(6);
      track.pid = static_cast<int64_t>(descriptor.message(3).count(1));
    }
    if (descriptor.has(4)) {
      track.name = descriptor.message(4).text(5);
      track.pid = static_cast<int64_t>(descriptor.message(4).count(1));
      track.tid = static_cast<int64_t>(descriptor.message(4).count(2));
    }
    track.is_counter = descriptor.has(8);
    track.unit = descriptor.message(8).text(6);
    if (track.parent != 0 && !trace_.tracks.contains(track.parent))
      throw std::runtime_error("a track stands before its parent");
  }

  static const std::string &interned(Sequence &sequence, uint32_t field, uint64_t id) {
    auto found = sequence.strings[field].find(id);
    if (found == sequence.strings[field].end())
      throw std::runtime_error("a string is used before it is given");
    return found->second;
  }

  static std::string value_of(Sequence &sequence, const proto::Message &annotation) {
    if (annotation.has(17))
      return interned(sequence, 29, annotation.count(17));
    if (annotation.has(6))
      return annotation.text(6);
    if (annotation.has(2))
      return annotation.count(2) ? "true" : "false";
    if (annotation.has(4))
      return std::to_string(static_cast<int64_t>(annotation.count(4)));
    return std::to_string(annotation.count(3));
  }

  static void annotate(Sequence &sequence, const proto::Message &annotation,
                       const std::string &prefix, Slice &slice) {
    std::string key = prefix + (annotation.has(10) ? annotation.text(10)
                                                   : interned(sequence, 3, annotation.count(1)));
    for (const proto::Field &entry : annotation.all(11))
      annotate(sequence, proto::Message(entry.bytes), key + ".", slice);
    if (!annotation.has(11))
      slice.annotations[key] = value_of(sequence, annotation);
  }

  void add_event(const proto::Message &packet, Sequence &sequence) {
    sequence.clock_ns =
        static_cast<int64_t>(static_cast<uint64_t>(sequence.clock_ns) + packet.count(8));
    proto::Message event = packet.message(11);
    Event read;
    read.at = sequence.clock_ns;
    read.type = event.count(9);
    read.value = event.real(44);
    read.slice.start_ns = read.at;
    read.slice.track = event.has(11) ? event.count(11) : sequence.track;
    if (!trace_.tracks.contains(read.slice.track))
      throw std::runtime_error("an event stands before its track");
    if (event.has(3))
      read.slice.category = interned(sequence, 1, event.count(3));
    read.slice.name = event.has(10) ? interned(sequence, 2, event.count(10)) : event.text(23);
    for (const proto::Field &annotation : event.all(4))
      annotate(sequence, proto::Message(annotation.bytes), "", read.slice);
    for (const proto::Field &flow : event.all(47))
      read.slice.flows.push_back(flow.value);
    events_.push_back(std::move(read));
  }

  void play(const Event &event) {
    std::vector<size_t> &open = open_[event.slice.track];
    if (event.type == 4) {
      trace_.counters.push_back({event.at, event.slice.track, event.value});
    } else if (event.type == 2) {
      if (open.empty()) {
        ++trace_.errors;
        return;
      }
      trace_.slices[open.back()].end_ns = event.at;
      open.pop_back();
    } else {
      trace_.slices.push_back(event.slice);
      Slice &slice = trace_.slices.back();
      slice.depth = static_cast<int>(open.size());
      slice.parent = open.empty() ? -1 : static_cast<int>(open.back());
      slice.is_instant = event.type == 3;
      if (slice.is_instant)
        slice.end_ns = event.at;
      else
        open.push_back(trace_.slices.size() - 1);
    }
  }

  std::string raw_;
  Trace trace_;
  std::map<uint64_t, Sequence> sequences_;
  std::vector<Event> events_;
  std::map<uint64_t, std::vector<size_t>> open_;
};

inline Trace read(const std::string &packed) { return Reader().read(packed); }

} // namespace perfetto_file
