// Hands each callback of CUPTI to the source that asked for it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "driver/cupti/cupti_abi.h"

namespace proton {

/// A receiver of callbacks of one domain.
class CallbackSource {
public:
  virtual ~CallbackSource() = default;
  virtual int domain() const = 0;
  /// Callback ids to enable. An id belongs to one source.
  virtual std::vector<uint32_t> callbacks() const = 0;
  /// Whether a library that lacks some of the ids is good enough.
  virtual bool may_lack_some() const { return false; }
  /// [any thread of the target, inside of a call of the driver]
  virtual void handle(uint32_t cbid, const void *data) noexcept = 0;
};

/// (domain, callback id) -> source. Callbacks may come while it is filled.
class CallbackTable {
public:
  void add(CallbackSource &source) {
    Row &row = rows_.at(static_cast<size_t>(source.domain()));
    for (uint32_t cbid : source.callbacks())
      row.at(cbid).store(&source, std::memory_order_release);
  }
  void dispatch(int domain, uint32_t cbid, const void *data) const noexcept {
    auto row = static_cast<size_t>(domain);
    if (row >= kDomains || cbid >= kCallbacks)
      return;
    if (CallbackSource *source = rows_[row][cbid].load(std::memory_order_acquire))
      source->handle(cbid, data);
  }

private:
  static constexpr size_t kDomains = 8;
  static constexpr size_t kCallbacks = 1024;
  using Row = std::array<std::atomic<CallbackSource *>, kCallbacks>;
  std::array<Row, kDomains> rows_{};
};

} // namespace proton
