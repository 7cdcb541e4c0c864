#include "record/record_sink.h"

#include <atomic>

namespace proton {

uint64_t next_correlation_id() noexcept {
  // Vendors count from 1 in 32 bits; ours start above.
  static std::atomic<uint64_t> next{uint64_t{1} << 40};
  return next.fetch_add(1, std::memory_order_relaxed);
}

} // namespace proton
