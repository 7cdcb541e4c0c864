#include "collector/cupti/callbacks/launch_bracket.h"

namespace proton {

std::vector<uint32_t> BracketedLaunchSource::callbacks() const {
  std::vector<uint32_t> calls = kernels_.callbacks();
  calls.push_back(cupti::kCuGraphLaunch);
  calls.push_back(cupti::kCuGraphLaunchPtsz);
  return calls;
}

void BracketedLaunchSource::handle(uint32_t cbid, const void *data) noexcept {
  const auto &call = *static_cast<const cupti::CallbackData *>(data);
  bool is_graph = cbid == cupti::kCuGraphLaunch || cbid == cupti::kCuGraphLaunchPtsz;
  CallbackSource &inner = is_graph ? graphs_ : kernels_;
  if (call.site == cupti::kEnter)
    bracket_.launch_begins(call.context);
  inner.handle(cbid, data);
  if (call.site != cupti::kEnter)
    bracket_.launch_ended(call.context, is_graph);
}

} // namespace proton
