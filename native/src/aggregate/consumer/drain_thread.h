// A thread that consumes the logs, so that the target's threads do not.
#pragma once

namespace proton {

/// Has the logs consumed soon. The thread is started by the first request; where it cannot be, the
/// caller consumes. Where it lags far behind, the caller waits a millisecond. [any thread]
void request_background_drain() noexcept;

} // namespace proton
