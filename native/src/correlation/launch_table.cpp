#include "correlation/launch_table.h"

#include <algorithm>

namespace proton {

void LaunchTable::forget_except(const std::vector<EpochId> &live_epochs) {
  remove_if([&](const LaunchRecord &launch) {
    bool is_live = std::binary_search(live_epochs.begin(), live_epochs.end(), launch.at.epoch);
    forgotten_ += !is_live && launch.kind == LaunchKind::kKernel ? 1 : 0;
    return !is_live;
  });
}

} // namespace proton
