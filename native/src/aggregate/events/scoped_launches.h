// Launches of kernels with scopes inside: what is known of their insides and when their kernels ran
// come from two collectors, in either order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "calltree/scope_timeline.h"
#include "record/record.h"

namespace proton {

/// The scopes of a launch for one session, which wait until the kernel's times are known. Not
/// synchronised: the aggregator's lock guards it.
struct HeldScopes {
  EpochId epoch = 0;
  uint32_t session = 0; ///< its generation
  uint32_t phase = 0;
  TimelineLaunch scopes;
};

class ScopedLaunches {
public:
  using Released = std::vector<HeldScopes>;
  static constexpr size_t kMaxBytes = size_t{64} << 20; ///< of scopes that wait

  /// A launch that was noted has scopes inside.
  void expect(uint64_t correlation_id, EpochId epoch) { launches_[correlation_id].epoch = epoch; }
  /// Its kernel ran. Returns the scopes that waited for it, in their place.
  Released kernel_ran(uint64_t correlation_id, int64_t start_ns, int64_t end_ns);
  /// Its scopes came. Returns the scopes that need not wait, or have waited for too long.
  Released add(uint64_t correlation_id, HeldScopes held);
  /// They came for every session.
  void end_scopes(uint64_t correlation_id);
  /// No kernel will come. Returns the scopes that waited.
  Released without_kernel(uint64_t correlation_id);
  /// The phase of a session ends. Returns its scopes that wait.
  Released end_phase(uint32_t session, uint32_t phase);
  template <typename Predicate> void forget_if(Predicate &&is_over) {
    for (auto each = launches_.begin(); each != launches_.end();)
      each = is_over(each->second.epoch) ? erase(each) : std::next(each);
  }

  bool is_empty() const { return launches_.empty(); }
  size_t waiting_bytes() const { return waiting_bytes_; }

private:
  struct Launch {
    EpochId epoch = 0;
    bool has_run = false;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    Released waiting; ///< one for each session
  };
  using Launches = std::map<uint64_t, Launch>; ///< the oldest is about the first

  Launches::iterator erase(Launches::iterator launch);
  void take_waiting(Launch &launch, Released &to);

  Launches launches_;
  size_t waiting_bytes_ = 0;
};

} // namespace proton
