#include "writer/timeline/trace_encoder.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "support/deflate.h"
#include "writer/bytes/proto_bytes.h"
#include "writer/bytes/utf8_text.h"
#include "writer/events/event_lanes.h"
#include "writer/events/event_nodes.h"
#include "writer/events/graph_runs.h"
#include "writer/events/held_events.h"
#include "writer/events/kernel_scopes.h"
#include "writer/timeline/perfetto_packets.h"
#include "writer/timeline/perfetto_slices.h"
#include "writer/timeline/perfetto_strings.h"
#include "writer/timeline/perfetto_tracks.h"

namespace proton {
namespace {

using namespace perfetto;

// One for each process of all hosts.
uint64_t process_hash(const TraceFacts &facts) {
  uint64_t hash = hash_of_text(facts.host);
  hash = mixed_bits(hash ^ static_cast<uint64_t>(facts.process_id));
  hash = mixed_bits(hash ^ static_cast<uint64_t>(facts.rank));
  return mixed_bits(
      hash ^ (static_cast<uint64_t>(facts.start_ns) + static_cast<uint64_t>(facts.unix_offset_ns)));
}

class PerfettoEncoder final : public TraceEncoder {
public:
  void begin(const TraceFacts &facts, std::string &out) override;
  void add(const EventBatch &batch, std::string &out) override;
  void flush(std::string &out) override;
  std::string_view tail() const override { return {}; }
  void end(const TraceEnd &end, std::string &out) override;

private:
  static constexpr size_t kMaxRawBytes = size_t{4} << 20; ///< of a gzip member

  int64_t unix_ns(int64_t monotonic_ns) const;
  void write_counters();
  void write_session_event(const char *name, int64_t unix_ns, std::string_view annotations);
  void write_profile(std::string_view profile);
  void hand_out();
  void hand_out_if_many(std::string &out);
  void pack(std::string &out);

  int64_t unix_offset_ns_ = 0;
  EventNodes nodes_;
  EventLanes lanes_;
  HeldEvents held_{nodes_};
  GraphRuns runs_{nodes_};
  PerfettoStrings strings_{nodes_};
  PerfettoPackets packets_;
  std::optional<PerfettoTracks> tracks_;
  std::optional<PerfettoSlices> slices_;
  std::optional<KernelScopes> kernel_scopes_;
  std::vector<EventCounter> counters_;
  uint64_t without_lane_ = 0;
};

/// DebugAnnotations with their names, in the fields of a TrackEvent.
class Annotations {
public:
  void number(std::string_view key, int64_t value) {
    size_t entry = open(kAnnotation, key);
    proto_.integer(kSigned, value);
    proto_.close(entry);
  }
  void flag(std::string_view key, bool value) {
    size_t entry = open(kAnnotation, key);
    proto_.count(kBool, value ? 1 : 0);
    proto_.close(entry);
  }
  void text(std::string_view key, std::string_view value) {
    std::string scratch;
    size_t entry = open(kAnnotation, key);
    proto_.text(kText, valid_utf8(value, scratch));
    proto_.close(entry);
  }
  void counts(std::string_view key, const std::map<std::string, uint64_t> &values) {
    size_t entry = open(kAnnotation, key);
    for (const auto &[name, value] : values) {
      size_t item = open(kEntries, name);
      proto_.count(kUnsigned, value);
      proto_.close(item);
    }
    proto_.close(entry);
  }
  const std::string &fields() const { return fields_; }

private:
  size_t open(uint32_t field, std::string_view key) {
    std::string scratch;
    size_t entry = proto_.open(field);
    proto_.text(kKeyText, valid_utf8(key, scratch));
    return entry;
  }

  std::string fields_;
  ProtoBytes proto_{fields_};
};

int64_t PerfettoEncoder::unix_ns(int64_t monotonic_ns) const {
  return static_cast<int64_t>(static_cast<uint64_t>(monotonic_ns) +
                              static_cast<uint64_t>(unix_offset_ns_));
}

void PerfettoEncoder::begin(const TraceFacts &facts, std::string &out) {
  unix_offset_ns_ = facts.unix_offset_ns;
  uint64_t hash = process_hash(facts);
  packets_.begin(static_cast<uint32_t>(hash >> 35) | 1, unix_ns(facts.start_ns)); // not 0
  tracks_.emplace(facts, mixed_bits(hash + 1));
  slices_.emplace(PerfettoParts{nodes_, lanes_, strings_, *tracks_, packets_, runs_},
                  unix_offset_ns_, mixed_bits(hash + 2));
  kernel_scopes_.emplace(unix_offset_ns_);
  add_slice_categories(strings_);
  Annotations said;
  said.number("process_id", facts.process_id);
  said.text("process_name", facts.process_name);
  said.text("host", facts.host);
  if (facts.rank >= 0)
    said.number("rank", facts.rank);
  if (facts.local_rank >= 0)
    said.number("local_rank", facts.local_rank);
  if (facts.world_size >= 0)
    said.number("world_size", facts.world_size);
  write_session_event("proton_bench: start of session", unix_ns(facts.start_ns), said.fields());
  flush(out);
}

void PerfettoEncoder::write_session_event(const char *name, int64_t unix_ns,
                                          std::string_view annotations) {
  std::string head;
  ProtoBytes proto(head);
  proto.count(kType, kInstant);
  proto.count(kTrackUuid, tracks_->session(packets_));
  proto.text(kNameText, name);
  packets_.strings(strings_);
  packets_.event(unix_ns, head, annotations, {});
}

void PerfettoEncoder::write_profile(std::string_view profile) {
  while (!profile.empty()) {
    std::string_view piece = profile.substr(0, kProfilePieceBytes);
    profile.remove_prefix(piece.size());
    std::string fields;
    ProtoBytes proto(fields);
    proto.count(kProfileRest, profile.size());
    proto.text(kProfilePiece, piece);
    packets_.message(kProfile, fields);
  }
}

void PerfettoEncoder::write_counters() {
  std::stable_sort(
      counters_.begin(), counters_.end(),
      [](const EventCounter &left, const EventCounter &right) { return left.at_ns < right.at_ns; });
  for (const EventCounter &counter : counters_) {
    std::string head;
    ProtoBytes proto(head);
    proto.count(kType, kCounterReading);
    proto.count(kTrackUuid, tracks_->counter(counter, packets_));
    proto.real(kCounterReal, counter.value);
    packets_.event(unix_ns(counter.at_ns), head, {}, {});
  }
  counters_.clear();
}

void PerfettoEncoder::hand_out() {
  without_lane_ += held_.hand_out(lanes_, *slices_);
  runs_.take_finished(held_);
  write_counters();
}

void PerfettoEncoder::hand_out_if_many(std::string &out) {
  if (held_.size() + counters_.size() >= HeldEvents::kMaxEvents)
    hand_out();
  if (packets_.size() >= kMaxRawBytes)
    pack(out);
}

void PerfettoEncoder::pack(std::string &out) {
  if (packets_.size() == 0)
    return;
  if (!append_gzip(packets_.bytes(), out))
    out += packets_.bytes();
  packets_.clear();
}

void PerfettoEncoder::add(const EventBatch &batch, std::string &out) {
  nodes_.add(batch.nodes);
  for (const EventThread &thread : batch.threads)
    tracks_->name_thread(thread, packets_);
  counters_.insert(counters_.end(), batch.counters.begin(), batch.counters.end());
  held_.add(batch);
  hand_out_if_many(out);
  for (const auto &launch : batch.kernel_scopes) {
    kernel_scopes_->add(*launch, packets_.newest_ns() - unix_offset_ns_, nodes_, held_);
    hand_out_if_many(out);
  }
}

void PerfettoEncoder::flush(std::string &out) {
  hand_out();
  pack(out);
}

void PerfettoEncoder::end(const TraceEnd &end, std::string &out) {
  hand_out();
  runs_.finish();
  runs_.take_finished(held_);
  hand_out();
  Annotations said;
  said.number("clock_drift_ns", end.clock_drift_ns);
  std::map<std::string, uint64_t> dropped = end.dropped;
  if (without_lane_ > 0)
    dropped["event of a timeline that found no lane"] += without_lane_;
  if (!dropped.empty())
    said.counts("dropped", dropped);
  said.flag("is_partial", end.is_partial);
  write_session_event("proton_bench: end of session", packets_.newest_ns(), said.fields());
  if (end.profile)
    write_profile(end.profile());
  pack(out);
}

} // namespace

std::unique_ptr<TraceEncoder> make_perfetto_encoder() {
  return std::make_unique<PerfettoEncoder>();
}

} // namespace proton
