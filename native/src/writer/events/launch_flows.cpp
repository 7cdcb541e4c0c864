#include "writer/events/launch_flows.h"

#include <algorithm>

namespace proton {

std::optional<uint32_t> LaunchFlows::arrow(const TimelineEvent &event) {
  bool is_work = event.kind == EventKind::kKernel || event.kind == EventKind::kCopy ||
                 event.kind == EventKind::kGraph;
  if (!is_work || event.launch == 0)
    return std::nullopt;
  if (!event.is_of_graph && event.kind != EventKind::kGraph)
    return 0;
  auto [found, is_new] = streams_.try_emplace(event.launch);
  if (is_new) {
    oldest_.push_back(event.launch);
    if (oldest_.size() > kMaxLaunches) {
      streams_.erase(oldest_.front());
      oldest_.pop_front();
      found = streams_.find(event.launch);
    }
  }
  std::vector<uint64_t> &streams = found->second;
  uint64_t stream = uint64_t{static_cast<uint32_t>(event.device)} << 32 | event.track;
  if (streams.size() >= kMaxArrows ||
      std::find(streams.begin(), streams.end(), stream) != streams.end())
    return std::nullopt;
  streams.push_back(stream);
  return static_cast<uint32_t>(streams.size()) - 1;
}

} // namespace proton
