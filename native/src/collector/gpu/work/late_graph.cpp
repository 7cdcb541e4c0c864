#include "collector/gpu/work/late_graph.h"

#include <unistd.h>

namespace proton {

LateGraph::LateGraph(const std::string &kind)
    : text_(
          "proton_bench: a " + kind +
          " graph was captured before profiling began or while it was paused, so its kernels are "
          "shown by name under <captured_at>; record while it is captured to see their scopes\n") {}

void LateGraph::warn() noexcept {
  if (has_warned_.exchange(true))
    return;
  // Not through a stream of the C library, whose lock the target may hold.
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, text_.data(), text_.size());
}

} // namespace proton
