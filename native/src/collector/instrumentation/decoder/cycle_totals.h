// Sums of scope instances, in the layout of the reduction on the device.
#pragma once

#include <span>
#include <vector>

#include "collector/instrumentation/decoder/host_decoder.h"

namespace proton {

/// Totals without an instance.
ScopeTotals empty_scope_totals() noexcept;
void add_instance(ScopeTotals &totals, uint64_t cycles) noexcept;
/// Adds the sums of other launches.
void add_totals(ScopeTotals &totals, const ScopeTotals &other) noexcept;
void add_totals(KernelTotals &totals, const KernelTotals &other) noexcept;

/// Adds what it visits. `scopes` has an element for each scope of the layout.
class CycleTotals final : public BufferVisitor {
public:
  explicit CycleTotals(std::span<ScopeTotals> scopes) : scopes_(scopes) {}
  void instance(const BlockHeader &, const ScopeInstance &instance) override {
    add_instance(scopes_[instance.scope], instance.cycles);
  }

private:
  std::span<ScopeTotals> scopes_;
};

} // namespace proton
