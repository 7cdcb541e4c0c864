// A process that the program starts without having it as a child.
#pragma once

#include <string>
#include <vector>

namespace proton {

struct DetachedProcess {
  int error = 0;   ///< errno; 0: it runs
  int handle = -1; ///< descriptor of the process (pidfd); -1: Linux has none before 5.3
};

/// Starts a process that has `input` as its standard input and no other file of the program. A
/// program may wait for its children until it has none, or call wait() for each SIGCHLD. So what is
/// started here is none of them: its end sends no signal, and wait() neither returns nor awaits it.
/// Call it with all signals blocked.
DetachedProcess start_detached(const std::vector<std::string> &command,
                               const std::vector<std::string> &environment, int input);

/// Moves a descriptor away from the numbers of standard streams, which the program may have closed.
/// Returns the new one; -1 with `errno`: there is none, and the old one is closed.
int move_from_streams(int descriptor) noexcept;

/// Ends it, waits for that for some seconds, and closes the handle.
void end_detached(int handle) noexcept;

} // namespace proton
