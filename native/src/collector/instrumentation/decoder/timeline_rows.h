// The scope instances of one launch in the form of a TimelineRecord.
#pragma once

#include <vector>

#include "collector/instrumentation/decoder/host_decoder.h"
#include "record/timeline_record.h"

namespace proton {

/// Decode one launch into it, hand `programs` and `instances` over, then `clear` it for the next.
class TimelineRows final : public BufferVisitor {
public:
  explicit TimelineRows(bool has_short_clock) : clock_mask_(clock_mask(has_short_clock)) {}
  void begin_program(const BlockHeader &header) override;
  void instance(const BlockHeader &header, const ScopeInstance &instance) override;
  void end_program(const BlockHeader &header) override;
  void clear();

  std::vector<TimelineProgram> programs;
  std::vector<TimelineScope> instances;

private:
  uint64_t clock_mask_;
};

} // namespace proton
