// Joins device records with the launches they came from.
#pragma once

#include <cstdint>
#include <vector>

#include "correlation/id_table.h"
#include "record/record.h"

namespace proton {

/// Correlation id -> where the launch stood. `add` returns an older launch whose id was used again
/// before its record came.
class LaunchTable : public IdTable<LaunchRecord> {
public:
  /// Forgets launches of epochs that no phase needs any more; their records may still come.
  /// `live_epochs` ascend.
  void forget_except(const std::vector<EpochId> &live_epochs);
  /// Notes a launch whose phase was cleared before it got here.
  void forget() { ++forgotten_; }
  /// True when an unknown record is accounted for by a forgotten launch. A count is enough: one
  /// id per forgotten launch would grow without bound when their records never come.
  bool take_forgotten() { return forgotten_ != 0 && forgotten_-- != 0; }

private:
  uint64_t forgotten_ = 0;
};

} // namespace proton
