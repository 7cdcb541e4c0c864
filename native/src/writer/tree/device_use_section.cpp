#include "writer/tree/device_use_section.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "writer/bytes/utf8_text.h"

namespace proton {
namespace {

// Writes only the buckets from the first to the last used one: there are some hundred at most.
void pack_buckets(MsgpackBytes &out, const std::vector<uint32_t> &buckets) {
  auto first = std::find_if(buckets.begin(), buckets.end(), [](uint32_t n) { return n != 0; });
  out.text("latency_first_bucket");
  out.count(static_cast<uint64_t>(first - buckets.begin()));
  out.text("latency_buckets");
  out.array(static_cast<size_t>(buckets.end() - first));
  for (; first != buckets.end(); ++first)
    out.count(*first);
}

void pack_use(MsgpackBytes &out, const DeviceUse &use, size_t device, const TreeNode &node) {
  const std::pair<const char *, int64_t> numbers[] = {
      {"device", static_cast<int64_t>(device)},
      {"busy_ns", use.busy_ns},
      {"idle_ns", use.idle.all_ns},
      {"long_idle_ns", use.idle.long_ns},
      {"waiting_ns", use.waiting_ns},
      {"uncertain_ns", use.uncertain_ns},
      {"launches", static_cast<int64_t>(use.latency.count)},
      {"latency_clamped", static_cast<int64_t>(use.latency.clamped)},
      {"latency_sum_ns", use.latency.sum_ns},
      {"latency_min_ns", use.latency.min_ns},
      {"latency_max_ns", use.latency.max_ns},
  };
  out.map(std::size(numbers) + 3);
  out.text("scope");
  if (node.kind == FrameKind::kRoot)
    out.nil();
  else
    out.text(valid_utf8(node.name.text()));
  for (const auto &[name, value] : numbers) {
    out.text(name);
    out.integer(value);
  }
  pack_buckets(out, use.latency.buckets);
}

} // namespace

void pack_device_use(MsgpackBytes &out, const CallPathTree &tree,
                     const std::vector<int32_t> &devices_used) {
  std::vector<std::pair<const DeviceUse *, size_t>> known;
  for (const DeviceUse &use : tree.device_use()) {
    auto found = std::find(devices_used.begin(), devices_used.end(), use.device);
    if (found != devices_used.end())
      known.emplace_back(&use, static_cast<size_t>(found - devices_used.begin()));
  }
  out.text("device_use");
  out.array(known.size());
  for (const auto &[use, device] : known)
    pack_use(out, *use, device, tree.nodes()[use->node]);
}

} // namespace proton
