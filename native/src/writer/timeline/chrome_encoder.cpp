#include "writer/timeline/trace_encoder.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "writer/bytes/json_text.h"
#include "writer/events/event_lanes.h"
#include "writer/events/event_nodes.h"
#include "writer/events/graph_runs.h"
#include "writer/events/held_events.h"
#include "writer/events/kernel_scopes.h"
#include "writer/timeline/chrome_lanes.h"
#include "writer/timeline/chrome_slices.h"

namespace proton {
namespace {

class ChromeEncoder final : public TraceEncoder {
public:
  void spill_to(Spill spill) override { spill_ = std::move(spill); }
  void begin(const TraceFacts &facts, std::string &out) override;
  void add(const EventBatch &batch, std::string &out) override;
  void flush(std::string &out) override { hand_out(out); }
  std::string_view tail() const override { return "]}\n"; }
  void end(const TraceEnd &end, std::string &out) override;

private:
  void write_counters(std::string &out);
  void hand_out(std::string &out);
  static void write_profile(std::string_view profile, std::string &out);

  TraceFacts facts_;
  Spill spill_;
  EventNodes nodes_;
  EventLanes lanes_;
  HeldEvents held_{nodes_};
  GraphRuns runs_{nodes_};
  ChromeLanes rows_;
  std::optional<ChromeSlices> slices_;
  std::optional<KernelScopes> kernel_scopes_;
  std::vector<EventCounter> counters_;
  int64_t newest_ns_ = 0;
  uint64_t without_lane_ = 0;
};

void ChromeEncoder::begin(const TraceFacts &facts, std::string &out) {
  facts_ = facts;
  newest_ns_ = facts.start_ns;
  slices_.emplace(nodes_, lanes_, rows_, runs_, facts.start_ns, facts.upstream_shape);
  rows_.set_upstream_shape(facts.upstream_shape);
  slices_->spill_to(spill_);
  kernel_scopes_.emplace(facts.unix_offset_ns);
  out += "{\"baseTimeNanoseconds\":";
  append_json_number(out, facts.start_ns + facts.unix_offset_ns);
  if (facts.upstream_shape) {
    out += ",\"displayTimeUnit\":\"us\",\"traceEvents\":[";
    return;
  }
  if (facts.rank >= 0) {
    // With the spaces that readers of Kineto's files look for.
    out += ",\"distributedInfo\": {\"rank\": " + std::to_string(facts.rank);
    if (facts.local_rank >= 0)
      out += ", \"local_rank\": " + std::to_string(facts.local_rank);
    if (facts.world_size >= 0)
      out += ", \"world_size\": " + std::to_string(facts.world_size);
    out += "}";
  }
  out += ",\"displayTimeUnit\":\"us\"";
  out += ",\"host_name\":" + quoted(facts.host);
  out += ",\"process_id\":" + std::to_string(facts.process_id);
  out += ",\"process_name\":" + quoted(facts.process_name);
  out += ",\"traceEvents\":[";
  out += kFirstEvents;
}

void ChromeEncoder::write_counters(std::string &out) {
  for (const EventCounter &counter : counters_) {
    int32_t device = rows_.device_index(counter.device);
    auto [quantity, unit] = quantity_and_unit(counter.name.text());
    std::string name(quantity);
    if (device >= 0)
      name = "GPU " + std::to_string(device) + " " + name;
    // Viewers show the key behind the name.
    out += ",{\"args\":{" + quoted(unit.empty() ? "value" : unit) + ":";
    append_json_number(out, counter.value);
    out += "},\"name\":" + quoted(name) + ",\"ph\":\"C\",\"pid\":0,\"tid\":0,\"ts\":";
    append_us(out, counter.at_ns - facts_.start_ns);
    out += '}';
  }
  counters_.clear();
}

void ChromeEncoder::hand_out(std::string &out) {
  for (const HeldEvent &held : held_.events())
    newest_ns_ = std::max(newest_ns_, held.event.end_ns);
  slices_->exchange(out); // they are written behind what is there
  try {
    without_lane_ += held_.hand_out(lanes_, *slices_);
    if (facts_.upstream_shape)
      slices_->settle();
  } catch (...) {
    slices_->exchange(out);
    throw;
  }
  slices_->exchange(out);
  runs_.take_finished(held_);
  write_counters(out);
}

void ChromeEncoder::add(const EventBatch &batch, std::string &out) {
  nodes_.add(batch.nodes);
  for (const EventThread &thread : batch.threads)
    rows_.add_thread(thread);
  if (!facts_.upstream_shape)
    counters_.insert(counters_.end(), batch.counters.begin(), batch.counters.end());
  held_.add(batch);
  if (held_.size() + counters_.size() >= HeldEvents::kMaxEvents)
    hand_out(out);
  for (const auto &launch : batch.kernel_scopes) {
    kernel_scopes_->add(*launch, newest_ns_, nodes_, held_);
    if (held_.size() >= HeldEvents::kMaxEvents)
      hand_out(out);
  }
}

// Viewers pass over metadata that they do not know.
void ChromeEncoder::write_profile(std::string_view profile, std::string &out) {
  while (!profile.empty()) {
    std::string_view piece = profile.substr(0, kProfilePieceBytes);
    profile.remove_prefix(piece.size());
    out += ",{\"args\":{\"profile\":\"";
    append_base64(out, piece);
    out += "\",\"rest\":" + std::to_string(profile.size());
    out += "},\"name\":\"proton_bench.profile\",\"ph\":\"M\",\"pid\":0,\"tid\":0}";
  }
}

void ChromeEncoder::end(const TraceEnd &end, std::string &out) {
  hand_out(out);
  runs_.finish();
  runs_.take_finished(held_);
  hand_out(out);
  std::map<std::string, uint64_t> dropped = end.dropped;
  if (without_lane_ > 0)
    dropped["event of a timeline that found no lane"] += without_lane_;
  if (facts_.upstream_shape && dropped.empty()) {
    out += tail();
    return;
  }
  if (end.profile && !facts_.upstream_shape)
    write_profile(end.profile(), out);
  out += "],\"proton_bench\":{\"clock_drift_ns\":";
  append_json_number(out, end.clock_drift_ns);
  out += ",\"dropped\":{";
  const char *comma = "";
  for (const auto &[reason, count] : dropped) {
    out += comma + quoted(reason) + ":" + std::to_string(count);
    comma = ",";
  }
  out += "},\"is_partial\":";
  out += end.is_partial ? "true" : "false";
  out += "}}\n";
}

} // namespace

std::unique_ptr<TraceEncoder> make_chrome_encoder() { return std::make_unique<ChromeEncoder>(); }

} // namespace proton
