#include "writer/timeline/perfetto_slices.h"

#include "writer/bytes/proto_bytes.h"
#include "writer/bytes/utf8_text.h"

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

} // namespace

void add_slice_categories(PerfettoStrings &strings) {
  uint32_t number = 0;
  for (const char *name : kCategoryNames)
    strings.add_category(++number, name);
}

PerfettoSlices::PerfettoSlices(const PerfettoParts &parts, int64_t unix_offset_ns,
                               uint64_t flow_key)
    : parts_(parts), unix_offset_ns_(static_cast<uint64_t>(unix_offset_ns)), flow_key_(flow_key),
      call_stack_key_(parts.strings.annotation_name("call_stack")),
      correlation_key_(parts.strings.annotation_name("correlation")),
      open_key_(parts.strings.annotation_name("open")) {
  ProtoBytes(begin_).count(kType, kSliceBegin);
  ProtoBytes(end_).count(kType, kSliceEnd);
}

void PerfettoSlices::stand_on(uint32_t lane) {
  if (lane >= lane_tracks_.size())
    lane_tracks_.resize(parts_.lanes.size(), 0);
  uint64_t &track = lane_tracks_[lane];
  if (track == 0)
    track = parts_.tracks.lane(parts_.lanes, lane, parts_.packets);
  parts_.packets.stand_on(track);
}

uint32_t PerfettoSlices::name(const HeldEvent &held, uint32_t node) {
  const Name &name = parts_.nodes.name(node);
  if (held.event.kind == EventKind::kLaunch)
    return parts_.strings.launch_name(name);
  bool is_launched_graph =
      held.track.kind == TrackKind::kGraph && parts_.nodes.kind(node) == FrameKind::kGraph;
  return parts_.strings.event_name(is_launched_graph ? Name("graph launch") : name);
}

const std::string &PerfettoSlices::node_fields(const HeldEvent &held, uint32_t node,
                                               uint32_t category) {
  auto [found, is_new] = node_fields_.try_emplace(uint64_t{category} << 32 | node);
  if (is_new) {
    ProtoBytes proto(found->second);
    proto.count(kCategory, category);
    proto.count(kNameId, name(held, node));
    size_t stack = proto.open(kAnnotation);
    proto.count(kKeyId, call_stack_key_);
    proto.count(kTextId, parts_.strings.call_stack(node));
    proto.close(stack);
  }
  return found->second;
}

void PerfettoSlices::add_annotations(const HeldEvent &held) {
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
      proto.count(kKeyId, parts_.strings.annotation_name(key));
      proto.text(kText, valid_utf8(text, scratch));
      proto.close(annotation);
    }
  }
}

// Numbers of launches count up: the bytes that change stand at the end, next to the time.
void PerfettoSlices::add_flow(uint64_t number, uint32_t arrow) {
  ProtoBytes(more_).fixed64(kFlowIds, (flow_key_ + arrow) ^ reversed_bytes(number));
}

// One arrow tells which launch it was. A graph's has many nodes, most of them without an arrow:
// they tell the number of the launch.
void PerfettoSlices::add_flows(const HeldEvent &held, FrameKind kind) {
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

void PerfettoSlices::begin(const HeldEvent &held) {
  const TimelineEvent &event = held.event;
  uint32_t node = parts_.nodes.known(event.node);
  FrameKind kind = parts_.nodes.kind(node);
  stand_on(held.lane);
  const std::string &what = node_fields(held, node, category_of(held, kind));
  more_.clear();
  if (held.values != nullptr || event.is_open)
    add_annotations(held);
  add_flows(held, kind);
  parts_.packets.strings(parts_.strings);
  parts_.packets.event(
      static_cast<int64_t>(static_cast<uint64_t>(event.start_ns) + unix_offset_ns_), begin_, what,
      more_);
  if (event.is_of_graph && held.track.kind == TrackKind::kStream)
    parts_.runs.add(held);
}

void PerfettoSlices::end(const HeldEvent &held) {
  auto end_ns = static_cast<int64_t>(static_cast<uint64_t>(held.event.end_ns) + unix_offset_ns_);
  stand_on(held.lane);
  parts_.packets.event(end_ns, end_, {}, {});
}

} // namespace proton
