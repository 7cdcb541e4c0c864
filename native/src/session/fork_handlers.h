// What happens to the native core when the process forks.
#pragma once

namespace proton {

/// From now on fork() takes every lock of the core before and gives it back after; a child starts
/// with no session. Does nothing the second time.
void install_fork_handlers();

} // namespace proton
