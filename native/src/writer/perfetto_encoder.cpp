#include "writer/perfetto_encoder.h"

#include <algorithm>
#include <optional>

#include "support/deflate.h"
#include "writer/event_lanes.h"
#include "writer/event_nodes.h"
#include "writer/held_events.h"
#include "writer/launch_flows.h"
#include "writer/perfetto_fields.h"
#include "writer/perfetto_strings.h"
#include "writer/perfetto_tracks.h"
#include "writer/proto_bytes.h"
#include "writer/utf8_text.h"

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
};
constexpr const char *kCategoryNames[] = {"scope", "op",    "launch", "kernel",
                                          "copy",  "graph", "metric", "test"};

uint32_t category(const HeldEvent &held, FrameKind kind) {
  switch (held.event.kind) {
  case EventKind::kScope:
    if (kind == FrameKind::kTest)
      return kTestCategory;
    return held.values != nullptr ? kMetricCategory : kScopeCategory;
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
  }
  return kScopeCategory;
}

uint64_t mixed(uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
  return bits ^ (bits >> 31);
}

// One for each process of all hosts.
uint64_t process_hash(const TraceFacts &facts) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (char character : facts.host)
    hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001B3u;
  hash = mixed(hash ^ static_cast<uint64_t>(facts.process_id));
  hash = mixed(hash ^ static_cast<uint64_t>(facts.rank));
  return mixed(hash ^ static_cast<uint64_t>(facts.start_ns + facts.unix_offset_ns));
}

class PerfettoEncoder final : public TraceEncoder, private SliceVisitor {
public:
  void begin(const TraceFacts &facts, std::string &out) override;
  void add(const EventBatch &batch, std::string &out) override;
  void flush(std::string &out) override;
  std::string_view tail() const override { return {}; }
  void end(const TraceEnd &end, std::string &out) override;

private:
  static constexpr size_t kMaxRawBytes = size_t{4} << 20; ///< of a gzip member

  void begin(const HeldEvent &held) override;
  void end(const HeldEvent &held) override;
  void open_event(int64_t at_ns, uint64_t type, uint64_t track);
  void close_event();
  void write_head();
  void write_strings();
  void write_counters();
  void write_flows(const TimelineEvent &event, FrameKind kind);
  void annotate(std::string_view key, uint64_t value);
  void annotate_values(const EventValues &values);
  void write_session_event(std::string_view name, int64_t at_ns);
  void hand_out();
  void pack(std::string &out);

  TraceFacts facts_;
  EventNodes nodes_;
  EventLanes lanes_;
  HeldEvents held_;
  LaunchFlows flows_;
  PerfettoStrings strings_{nodes_};
  std::optional<PerfettoTracks> tracks_;
  std::vector<EventCounter> counters_;
  std::string raw_; ///< packets that are not in a gzip member yet
  ProtoBytes proto_{raw_};
  uint64_t flow_base_ = 0;
  uint32_t sequence_ = 0;
  int64_t clock_ns_ = 0; ///< that of the newest packet with a time
  int64_t newest_ns_ = 0;
  uint64_t without_lane_ = 0;
  size_t packet_ = 0;
  size_t event_ = 0;
};

void PerfettoEncoder::begin(const TraceFacts &facts, std::string &out) {
  facts_ = facts;
  uint64_t hash = process_hash(facts);
  sequence_ = static_cast<uint32_t>(hash >> 35) | 1; // 29 bits, not 0
  flow_base_ = mixed(hash + 1);
  // Numbers of tracks follow one another; 2^63 leaves room for those of any trace.
  tracks_.emplace(facts, mixed(hash + 2) >> 1, sequence_);
  clock_ns_ = facts.start_ns;
  newest_ns_ = facts.start_ns;
  write_head();
  for (uint32_t index = 0; index < std::size(kCategoryNames); ++index)
    strings_.add_category(index + 1, kCategoryNames[index]);
  write_strings();
  write_session_event("proton_bench: start of session", facts.start_ns);
  annotate("process_id", static_cast<uint64_t>(facts.process_id));
  close_event();
  flush(out);
}

// What the rest of the file counts on: its state and its clock. Times are steps from packet to
// packet of the sequence, so that they are short, and so that other files may follow this one.
void PerfettoEncoder::write_head() {
  auto start =
      static_cast<uint64_t>(facts_.start_ns) + static_cast<uint64_t>(facts_.unix_offset_ns);
  size_t packet = proto_.open(kPacket);
  proto_.count(kSequence, sequence_);
  proto_.count(kSequenceFlags, kStateCleared);
  size_t defaults = proto_.open(kPacketDefaults);
  proto_.count(kTimestampClock, kStepClock);
  proto_.close(defaults);
  size_t snapshot = proto_.open(kClockSnapshot);
  for (uint64_t clock : {kBootTime, kRealTime, kStepClock}) {
    size_t entry = proto_.open(kClocks);
    proto_.count(kClockId, clock);
    proto_.count(kClockTime, start);
    if (clock == kStepClock)
      proto_.count(kIsIncremental, 1);
    proto_.close(entry);
  }
  proto_.close(snapshot);
  proto_.close(packet);
}

void PerfettoEncoder::write_strings() {
  if (!strings_.has_new())
    return;
  size_t packet = proto_.open(kPacket);
  proto_.count(kSequence, sequence_);
  proto_.text(kInternedData, strings_.take_new());
  proto_.close(packet);
}

void PerfettoEncoder::open_event(int64_t at_ns, uint64_t type, uint64_t track) {
  packet_ = proto_.open(kPacket);
  proto_.count(kTimestamp, static_cast<uint64_t>(at_ns) - static_cast<uint64_t>(clock_ns_));
  clock_ns_ = at_ns;
  proto_.count(kSequence, sequence_);
  event_ = proto_.open(kTrackEvent);
  proto_.count(kType, type);
  proto_.count(kTrackUuid, track);
}

void PerfettoEncoder::close_event() {
  proto_.close(event_);
  proto_.close(packet_);
}

void PerfettoEncoder::write_session_event(std::string_view name, int64_t at_ns) {
  uint64_t track = tracks_->process(raw_);
  open_event(at_ns, kInstant, track);
  proto_.text(kNameText, name);
}

void PerfettoEncoder::annotate(std::string_view key, uint64_t value) {
  size_t annotation = proto_.open(kAnnotation);
  proto_.text(kKeyText, key);
  proto_.count(kUnsigned, value);
  proto_.close(annotation);
}

void PerfettoEncoder::annotate_values(const EventValues &values) {
  std::string scratch;
  for (const auto &[name, text] : values.values) {
    size_t annotation = proto_.open(kAnnotation);
    proto_.count(kKeyId, strings_.annotation_name(name));
    proto_.text(kText, valid_utf8(text, scratch));
    proto_.close(annotation);
  }
}

void PerfettoEncoder::write_flows(const TimelineEvent &event, FrameKind kind) {
  uint64_t first = flow_base_ + event.launch * LaunchFlows::kMaxArrows;
  if (event.kind == EventKind::kLaunch && event.launch != 0) {
    uint32_t arrows = kind == FrameKind::kGraph ? LaunchFlows::kMaxArrows : 1;
    for (uint32_t arrow = 0; arrow < arrows; ++arrow)
      proto_.fixed64(kFlowIds, first + arrow);
  } else if (auto arrow = flows_.arrow(event)) {
    proto_.fixed64(kFlowIds, first + *arrow);
  }
}

void PerfettoEncoder::begin(const HeldEvent &held) {
  const TimelineEvent &event = held.event;
  uint64_t track = tracks_->lane(lanes_, held.lane, raw_);
  uint32_t node = nodes_.known(event.node);
  const Name &name = nodes_.name(node);
  bool is_launch = event.kind == EventKind::kLaunch;
  uint32_t name_id = is_launch ? strings_.launch_name(name) : strings_.event_name(name);
  uint32_t stack_id = strings_.call_stack(node);
  uint32_t stack_key = strings_.annotation_name("call_stack");
  uint32_t correlation_key = strings_.annotation_name("correlation");
  if (held.values != nullptr)
    for (const auto &value : held.values->values)
      strings_.annotation_name(value.first);
  uint32_t open_key = event.is_open ? strings_.annotation_name("open") : 0;
  write_strings();
  FrameKind kind = nodes_.kind(node);
  open_event(event.start_ns, kSliceBegin, track);
  proto_.count(kCategory, category(held, kind));
  proto_.count(kNameId, name_id);
  size_t stack = proto_.open(kAnnotation);
  proto_.count(kKeyId, stack_key);
  proto_.count(kTextId, stack_id);
  proto_.close(stack);
  if (held.values != nullptr)
    annotate_values(*held.values);
  if (event.is_open) {
    size_t open = proto_.open(kAnnotation);
    proto_.count(kKeyId, open_key);
    proto_.count(kBool, 1);
    proto_.close(open);
  }
  if (event.launch != 0) {
    size_t correlation = proto_.open(kAnnotation);
    proto_.count(kKeyId, correlation_key);
    proto_.count(kUnsigned, event.launch);
    proto_.close(correlation);
  }
  write_flows(event, kind);
  close_event();
}

void PerfettoEncoder::end(const HeldEvent &held) {
  open_event(held.event.end_ns, kSliceEnd, tracks_->lane(lanes_, held.lane, raw_));
  close_event();
  newest_ns_ = std::max(newest_ns_, held.event.end_ns);
}

void PerfettoEncoder::write_counters() {
  std::stable_sort(
      counters_.begin(), counters_.end(),
      [](const EventCounter &left, const EventCounter &right) { return left.at_ns < right.at_ns; });
  for (const EventCounter &counter : counters_) {
    uint64_t track = tracks_->counter(counter, raw_);
    open_event(counter.at_ns, kCounterReading, track);
    proto_.real(kCounterReal, counter.value);
    close_event();
    newest_ns_ = std::max(newest_ns_, counter.at_ns);
  }
  counters_.clear();
}

void PerfettoEncoder::hand_out() {
  without_lane_ += held_.hand_out(lanes_, *this);
  write_counters();
}

void PerfettoEncoder::pack(std::string &out) {
  if (raw_.empty())
    return;
  if (!append_gzip(raw_, out))
    out += raw_;
  raw_.clear();
}

void PerfettoEncoder::add(const EventBatch &batch, std::string &out) {
  nodes_.add(batch.nodes);
  for (const EventThread &thread : batch.threads)
    tracks_->name_thread(thread, raw_);
  counters_.insert(counters_.end(), batch.counters.begin(), batch.counters.end());
  held_.add(batch);
  if (held_.size() + counters_.size() >= HeldEvents::kMaxEvents)
    hand_out();
  if (raw_.size() >= kMaxRawBytes)
    pack(out);
}

void PerfettoEncoder::flush(std::string &out) {
  hand_out();
  pack(out);
}

void PerfettoEncoder::end(const TraceEnd &end, std::string &out) {
  hand_out();
  write_session_event("proton_bench: end of session", newest_ns_);
  annotate("is_partial", end.is_partial ? 1 : 0);
  close_event();
  pack(out);
}

} // namespace

std::unique_ptr<TraceEncoder> make_perfetto_encoder() {
  return std::make_unique<PerfettoEncoder>();
}

} // namespace proton
