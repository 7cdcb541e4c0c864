#include "calltree/scope_timeline.h"

#include <algorithm>
#include <string>

namespace proton {
namespace {

std::string shown_name(const TimelineRecord &record, size_t id) {
  const char *name = record.scopes[id].name;
  return name ? name : "scope_" + std::to_string(id);
}

/// Whether every range of instances lies in the record, as the writer expects it.
bool is_whole(const TimelineRecord &record) {
  bool has_ranges = std::all_of(
      record.programs.begin(), record.programs.end(), [&](const TimelineProgram &program) {
        return uint64_t{program.first} + program.count <= record.instances.size();
      });
  bool has_names =
      std::all_of(record.instances.begin(), record.instances.end(),
                  [&](const TimelineScope &scope) { return scope.scope < record.scopes.size(); });
  return has_ranges && has_names;
}

// How far apart clocks that were compared may be and still mean the same moment.
constexpr int64_t kFarNs = 1'000'000;
constexpr int64_t kLongNs = 24LL * 3600 * 1'000'000'000; // no kernel runs so long

} // namespace

// Times come from a device's memory and may be anything: sums wrap.
void TimelineLaunch::put_into_kernel(int64_t start_ns, int64_t end_ns) {
  uint64_t first = UINT64_MAX, last = 0;
  for (const TimelineProgram &program : programs) {
    first = std::min(first, program.init_ns);
    last = std::max({last, program.init_ns, program.post_final_ns});
  }
  if (programs.empty() || end_ns <= start_ns || end_ns - start_ns > kLongNs ||
      last - first > static_cast<uint64_t>(kLongNs))
    return;
  int64_t spare_ns = end_ns - start_ns - static_cast<int64_t>(last - first);
  uint64_t least = static_cast<uint64_t>(start_ns) - first;
  // How far behind the kernel's start the first program is to start.
  int64_t behind_ns = spare_ns / 2;
  if (timer.is_known()) {
    auto measured_ns = static_cast<int64_t>(static_cast<uint64_t>(timer.offset_ns) - least);
    if (measured_ns < -kFarNs || measured_ns > std::max<int64_t>(spare_ns, 0) + kFarNs)
      return;
    if (spare_ns >= 0)
      behind_ns = std::clamp<int64_t>(measured_ns, 0, spare_ns);
  }
  timer.offset_ns = static_cast<int64_t>(least + static_cast<uint64_t>(behind_ns));
  timer.uncertainty_ns = std::max<int64_t>(spare_ns, 0) / 2;
  kernel_start_ns = start_ns;
  kernel_end_ns = end_ns;
}

// Launches of one kernel mostly follow one another: they share the names of its scopes.
void ScopeTimeline::name_scopes(const TimelineRecord &record) {
  bool is_same = names_ && names_->size() == record.scopes.size();
  for (size_t id = 0; is_same && id < record.scopes.size(); ++id)
    is_same = (*names_)[id].text() == shown_name(record, id);
  if (is_same)
    return;
  std::vector<Name> names;
  for (size_t id = 0; id < record.scopes.size(); ++id)
    names.emplace_back(shown_name(record, id));
  bytes_ += names.size() * sizeof(Name);
  names_ = std::make_shared<const std::vector<Name>>(std::move(names));
}

std::optional<TimelineLaunch> ScopeTimeline::own(NodeIndex kernel, int32_t device,
                                                 const TimelineRecord &record) {
  if (record.left_out != 0 || !is_whole(record))
    return std::nullopt;
  name_scopes(record);
  TimelineLaunch launch;
  launch.kernel = kernel;
  launch.device = device;
  launch.clock_hz = record.clock_hz;
  launch.timer = record.timer;
  launch.scope_names = names_;
  launch.programs.assign(record.programs.begin(), record.programs.end());
  launch.instances.assign(record.instances.begin(), record.instances.end());
  return launch;
}

bool ScopeTimeline::add(NodeIndex kernel, int32_t device, const TimelineRecord &record) {
  size_t wanted =
      sizeof(TimelineLaunch) + record.programs.size_bytes() + record.instances.size_bytes();
  is_full_ |= bytes_ + wanted > max_bytes_;
  if (is_full_)
    return false;
  std::optional<TimelineLaunch> launch = own(kernel, device, record);
  if (!launch)
    return false;
  launches_.push_back(std::make_shared<const TimelineLaunch>(std::move(*launch)));
  bytes_ += wanted;
  return true;
}

} // namespace proton
