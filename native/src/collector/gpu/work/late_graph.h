// Says once that a graph was captured before anybody listened.
#pragma once

#include <atomic>
#include <string>

namespace proton {

class LateGraph {
public:
  /// `kind`: e.g. "CUDA".
  explicit LateGraph(const std::string &kind);
  /// Has graphs that were captured before told of once more, on stderr.
  void warn_again() noexcept { has_warned_.store(false); }
  /// A launch of such a graph was seen. [launching thread]
  void warn() noexcept;

private:
  std::string text_;
  std::atomic<bool> has_warned_{false};
};

} // namespace proton
