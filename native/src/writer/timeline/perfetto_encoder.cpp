// Timelines in Perfetto's own format (TrackEvent), in gzip members.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "support/deflate.h"
#include "writer/bytes/proto_bytes.h"
#include "writer/bytes/utf8_text.h"
#include "writer/timeline/event_encoder.h"
#include "writer/timeline/perfetto_packets.h"
#include "writer/timeline/perfetto_tracks.h"

namespace proton {
namespace {

using namespace perfetto;

enum Category : uint32_t {
  kScopeCategory = 1,
  kOpCategory,
  kLaunchCategory,
  kKernelCategory,
  kCopyCategory,
  kGraphCategory,
  kMetricCategory,
  kTestCategory,
  kProgramCategory,
  kKernelScopeCategory,
  kGraphScopeCategory,
  kLayerCategory,
};
constexpr const char *kCategoryNames[] = {"scope",   "op",           "launch",      "kernel",
                                          "copy",    "graph",        "metric",      "test",
                                          "program", "kernel_scope", "graph_scope", "layer"};

uint32_t category_on_track(TrackKind track) {
  switch (track) {
  case TrackKind::kGraph:
    return kGraphScopeCategory;
  case TrackKind::kProcessor:
    return kProgramCategory;
  case TrackKind::kWarp:
    return kKernelScopeCategory;
  default:
    return 0;
  }
}

uint32_t category_of(const HeldEvent &held, FrameKind kind) {
  if (uint32_t category = category_on_track(held.track.kind); category != 0)
    return category;
  switch (held.event.kind) {
  case EventKind::kOp:
    return kOpCategory;
  case EventKind::kLaunch:
    return kLaunchCategory;
  case EventKind::kInterpreted:
  case EventKind::kKernel:
    return kKernelCategory;
  case EventKind::kCopy:
    return kCopyCategory;
  case EventKind::kGraph:
    return kGraphCategory;
  default:
    break;
  }
  if (kind == FrameKind::kTest)
    return kTestCategory;
  if (kind == FrameKind::kLayer)
    return kLayerCategory;
  return held.values != nullptr ? kMetricCategory : kScopeCategory;
}

uint64_t reversed_bytes(uint64_t value) { return __builtin_bswap64(value); }

// One for each process of all hosts.
uint64_t process_hash(const TraceFacts &facts) {
  uint64_t hash = hash_of_text(facts.host);
  hash = mixed_bits(hash ^ static_cast<uint64_t>(facts.process_id));
  hash = mixed_bits(hash ^ static_cast<uint64_t>(facts.rank));
  return mixed_bits(
      hash ^ (static_cast<uint64_t>(facts.start_ns) + static_cast<uint64_t>(facts.unix_offset_ns)));
}

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

class PerfettoEncoder final : public EventEncoder {
public:
  void begin(const TraceFacts &facts, std::string &out) override;
  void flush(std::string &out) override;
  std::string_view tail() const override { return {}; }
  void end(const TraceEnd &end, std::string &out) override;

private:
  static constexpr size_t kMaxRawBytes = size_t{4} << 20; ///< of a gzip member

  void name_thread(const EventThread &thread) override { tracks_->name_thread(thread, packets_); }
  void begin_slice(const HeldEvent &held, std::string &out) override;
  void end_slice(const HeldEvent &held) override;
  void write_counter(const EventCounter &counter, std::string &out) override;
  void handed_out(std::string &out) override;

  int64_t unix_ns(int64_t monotonic_ns) const;
  void write_session_event(const char *name, int64_t unix_ns, std::string_view annotations);
  void write_profile(std::string_view profile);
  void pack(std::string &out);
  void stand_on(uint32_t lane);
  const std::string &node_fields(const HeldEvent &held, uint32_t node, uint32_t category);
  uint32_t name(const HeldEvent &held, uint32_t node);
  void add_annotations(const HeldEvent &held);
  void add_flows(const HeldEvent &held, FrameKind kind);
  void add_flow(uint64_t number, uint32_t arrow);

  PerfettoStrings strings_{nodes_};
  PerfettoPackets packets_;
  std::optional<PerfettoTracks> tracks_;
  uint64_t flow_key_ = 0; ///< one of the process: numbers of its arrows differ from those of others
  uint32_t call_stack_key_ = 0;
  uint32_t correlation_key_ = 0;
  uint32_t open_key_ = 0;
  std::string begin_; ///< fields of what begins
  std::string end_;   ///< of what ends
  LaunchFlows flows_;
  std::vector<uint64_t> lane_tracks_;                     ///< 0: not described yet
  std::unordered_map<uint64_t, std::string> node_fields_; ///< by node and category
  std::string more_;                                      ///< fields of the event at hand
};

int64_t PerfettoEncoder::unix_ns(int64_t monotonic_ns) const {
  return static_cast<int64_t>(static_cast<uint64_t>(monotonic_ns) +
                              static_cast<uint64_t>(facts_.unix_offset_ns));
}

void PerfettoEncoder::begin(const TraceFacts &facts, std::string &out) {
  start(facts);
  uint64_t hash = process_hash(facts);
  packets_.begin(static_cast<uint32_t>(hash >> 35) | 1, unix_ns(facts.start_ns)); // not 0
  tracks_.emplace(facts, mixed_bits(hash + 1));
  flow_key_ = mixed_bits(hash + 2);
  call_stack_key_ = strings_.annotation_name("call_stack");
  correlation_key_ = strings_.annotation_name("correlation");
  open_key_ = strings_.annotation_name("open");
  ProtoBytes(begin_).count(kType, kSliceBegin);
  ProtoBytes(end_).count(kType, kSliceEnd);
  uint32_t number = 0;
  for (const char *name : kCategoryNames)
    strings_.add_category(++number, name);
  Annotations annotations;
  annotations.number("process_id", facts.process_id);
  annotations.text("process_name", facts.process_name);
  annotations.text("host", facts.host);
  if (facts.rank >= 0)
    annotations.number("rank", facts.rank);
  if (facts.local_rank >= 0)
    annotations.number("local_rank", facts.local_rank);
  if (facts.world_size >= 0)
    annotations.number("world_size", facts.world_size);
  write_session_event("proton_bench: start of session", unix_ns(facts.start_ns),
                      annotations.fields());
  flush(out);
}

void PerfettoEncoder::stand_on(uint32_t lane) {
  if (lane >= lane_tracks_.size())
    lane_tracks_.resize(lanes_.size(), 0);
  uint64_t &track = lane_tracks_[lane];
  if (track == 0)
    track = tracks_->lane(lanes_, lane, packets_);
  packets_.stand_on(track);
}

uint32_t PerfettoEncoder::name(const HeldEvent &held, uint32_t node) {
  const Name &name = nodes_.name(node);
  if (held.event.kind == EventKind::kLaunch)
    return strings_.launch_name(name);
  bool is_launched_graph =
      held.track.kind == TrackKind::kGraph && nodes_.kind(node) == FrameKind::kGraph;
  return strings_.event_name(is_launched_graph ? Name("graph launch") : name);
}

const std::string &PerfettoEncoder::node_fields(const HeldEvent &held, uint32_t node,
                                                uint32_t category) {
  auto [found, is_new] = node_fields_.try_emplace(uint64_t{category} << 32 | node);
  if (is_new) {
    ProtoBytes proto(found->second);
    proto.count(kCategory, category);
    proto.count(kNameId, name(held, node));
    size_t stack = proto.open(kAnnotation);
    proto.count(kKeyId, call_stack_key_);
    proto.count(kTextId, strings_.call_stack(node));
    proto.close(stack);
  }
  return found->second;
}

void PerfettoEncoder::add_annotations(const HeldEvent &held) {
  ProtoBytes proto(more_);
  if (held.event.is_open) {
    size_t annotation = proto.open(kAnnotation);
    proto.count(kKeyId, open_key_);
    proto.count(kBool, 1);
    proto.close(annotation);
  }
  if (held.values != nullptr) {
    std::string scratch;
    for (const auto &[key, text] : held.values->values) {
      size_t annotation = proto.open(kAnnotation);
      proto.count(kKeyId, strings_.annotation_name(key));
      proto.text(kText, valid_utf8(text, scratch));
      proto.close(annotation);
    }
  }
}

// Numbers of launches count up: the bytes that change stand at the end, next to the time.
void PerfettoEncoder::add_flow(uint64_t number, uint32_t arrow) {
  ProtoBytes(more_).fixed64(kFlowIds, (flow_key_ + arrow) ^ reversed_bytes(number));
}

// One arrow tells which launch it was. A graph's has many nodes, most of them without an arrow:
// they tell the number of the launch.
void PerfettoEncoder::add_flows(const HeldEvent &held, FrameKind kind) {
  const TimelineEvent &event = held.event;
  if (held.link != 0)
    add_flow(held.link, 0);
  if (event.launch == 0)
    return;
  bool is_graph = event.is_of_graph || event.kind == EventKind::kGraph ||
                  (event.kind == EventKind::kLaunch && kind == FrameKind::kGraph);
  if (is_graph) {
    ProtoBytes proto(more_);
    size_t annotation = proto.open(kAnnotation);
    proto.count(kKeyId, correlation_key_);
    proto.count(kUnsigned, event.launch);
    proto.close(annotation);
  }
  if (event.kind == EventKind::kLaunch) {
    uint32_t arrows = is_graph ? LaunchFlows::kMaxArrows : 1;
    for (uint32_t arrow = 0; arrow < arrows; ++arrow)
      add_flow(event.launch, arrow);
  } else if (auto arrow = flows_.arrow(event)) {
    add_flow(event.launch, *arrow);
  }
}

void PerfettoEncoder::begin_slice(const HeldEvent &held, std::string &) {
  const TimelineEvent &event = held.event;
  uint32_t node = nodes_.known(event.node);
  FrameKind kind = nodes_.kind(node);
  stand_on(held.lane);
  const std::string &what = node_fields(held, node, category_of(held, kind));
  more_.clear();
  if (held.values != nullptr || event.is_open)
    add_annotations(held);
  add_flows(held, kind);
  packets_.strings(strings_);
  packets_.event(unix_ns(event.start_ns), begin_, what, more_);
  if (event.is_of_graph && held.track.kind == TrackKind::kStream)
    runs_.add(held);
}

void PerfettoEncoder::end_slice(const HeldEvent &held) {
  stand_on(held.lane);
  packets_.event(unix_ns(held.event.end_ns), end_, {}, {});
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

void PerfettoEncoder::write_counter(const EventCounter &counter, std::string &) {
  std::string head;
  ProtoBytes proto(head);
  proto.count(kType, kCounterReading);
  proto.count(kTrackUuid, tracks_->counter(counter, packets_));
  proto.real(kCounterReal, counter.value);
  packets_.event(unix_ns(counter.at_ns), head, {}, {});
}

void PerfettoEncoder::handed_out(std::string &out) {
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

void PerfettoEncoder::flush(std::string &out) {
  hand_out(out);
  pack(out);
}

void PerfettoEncoder::end(const TraceEnd &end, std::string &out) {
  std::map<std::string, uint64_t> dropped = finish(end, out);
  Annotations annotations;
  annotations.number("clock_drift_ns", end.clock_drift_ns);
  if (!dropped.empty())
    annotations.counts("dropped", dropped);
  annotations.flag("is_partial", false);
  write_session_event("proton_bench: end of session", packets_.newest_ns(), annotations.fields());
  if (end.profile)
    write_profile(end.profile());
  pack(out);
}

} // namespace

std::unique_ptr<TraceEncoder> make_perfetto_encoder() {
  return std::make_unique<PerfettoEncoder>();
}

} // namespace proton
