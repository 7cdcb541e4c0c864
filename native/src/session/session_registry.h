// The sessions of the process, and the epochs that follow from which of them are active.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "session/session.h"
#include "support/error.h"

namespace proton {

/// Sessions have numbers from 0, in the order in which they are made. Every function takes the
/// aggregator's lock, unless the caller passes it.
class SessionRegistry {
public:
  static SessionRegistry &instance();

  /// Makes an inactive session. Throws Error(kUnavailable) in a forked child that cannot record,
  /// and Error(kSession) when the process has had too many.
  std::shared_ptr<Session> add(ContextSource source, bool records_wall, bool keeps_timeline = false,
                               bool upstream_shape = false);
  /// Sessions that were not removed, the oldest first.
  std::vector<std::shared_ptr<Session>> list();
  size_t active_count();

  // For sessions.

  /// Names the active sessions anew; records from now on belong to this epoch.
  void open_epoch(Aggregator::Held &held);
  /// Looks for steps, anew unless another session follows them already.
  void look_for_steps();
  /// Whether a session that is active follows them.
  bool are_steps_recorded(const Aggregator::Held &held) const;
  /// A window of steps begins on the calling thread.
  void begin_window(bool is_first) noexcept;
  /// The session is removed. Returns what was held of it.
  std::shared_ptr<Session> forget(int id, const Aggregator::Held &held);
  /// The error for a session that is removed; it names the others.
  Error unknown(int id, const Aggregator::Held &held) const;

  /// In a forked child: no session goes on.
  void reset_after_fork() noexcept;

private:
  std::map<int, std::shared_ptr<Session>> sessions_;
  int next_id_ = 0;
  uint32_t next_generation_ = 1;
};

// What happens to the native core when the process forks.

/// From now on fork() takes every lock of the core before and gives it back after; a child starts
/// with no session. Does nothing the second time.
void install_fork_handlers();

} // namespace proton
