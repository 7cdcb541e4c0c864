// The ranges of a vendor's marker library (NVTX, ROCTX) that a thread has open.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "context/thread/host_range.h"

namespace proton {

/// The name in "NAME, seq = N, op_id = N, ...": torch's emit_nvtx numbers every call of an
/// operator.
std::string_view name_of_range(std::string_view text) noexcept;

/// Used by its own thread only. Ranges past the limit are counted, but do not become scopes.
class MarkerRanges {
public:
  void push(const void *domain, std::string_view name);
  void pop(const void *domain) noexcept;
  /// The thread ended.
  void clear() noexcept {
    entries_.clear();
    beyond_ = 0;
  }

private:
  static constexpr size_t kMax = 4096;
  struct Entry {
    const void *domain;
    OpenRange range;
    bool is_over; ///< popped while a scope of ours, opened inside, is open
  };
  void close_innermost() noexcept;

  std::vector<Entry> entries_; ///< innermost last
  size_t beyond_ = 0;          ///< pushed when there was no room left
};

} // namespace proton
