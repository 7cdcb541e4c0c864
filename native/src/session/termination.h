// Writes partial files before SIGTERM ends the process, such as that of a worker of a pool.
#pragma once

namespace proton {

/// From now on what sessions recorded is written once more when SIGTERM comes; then the process
/// ends by it, as without. False, and nothing changes, where the program handles the signal itself
/// or the system gives no thread. A forked child ends at once. [one thread at a time]
bool write_when_terminated() noexcept;

} // namespace proton
