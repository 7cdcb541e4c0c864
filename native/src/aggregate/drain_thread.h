// A thread that consumes the logs, so that the target's threads do not.
#pragma once

namespace proton {

/// Has the logs consumed soon. The thread is started by the first request; where it cannot be, or
/// lags far behind, the caller consumes. [any thread, noexcept]
void request_background_drain() noexcept;

} // namespace proton
