// When a session did not listen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace proton {

/// Pauses of one session in order of time; the oldest of very many are forgotten.
class PauseList {
public:
  void pause(int64_t now_ns);
  void resume(int64_t now_ns);
  /// How much of the span was paused.
  int64_t within(int64_t start_ns, int64_t end_ns) const {
    bool is_clear = pauses_.empty() || start_ns >= pauses_.back().end_ns;
    return is_clear ? 0 : sum_within(start_ns, end_ns);
  }

private:
  struct Pause {
    int64_t start_ns;
    int64_t end_ns; ///< INT64_MAX while it lasts
  };
  static constexpr size_t kMost = 4096;
  int64_t sum_within(int64_t start_ns, int64_t end_ns) const;

  std::vector<Pause> pauses_;
};

} // namespace proton
