// Warns once about a graph that was captured before the collector started.
#pragma once

#include <atomic>
#include <string>

namespace proton {

class LateGraph {
public:
  /// `kind`: e.g. "CUDA".
  explicit LateGraph(const std::string &kind);
  /// Lets the next launch of such a graph warn again, on stderr.
  void warn_again() noexcept { has_warned_.store(false); }
  /// Call at a launch of such a graph. [launching thread]
  void warn() noexcept;

private:
  std::string text_;
  std::atomic<bool> has_warned_{false};
};

} // namespace proton
