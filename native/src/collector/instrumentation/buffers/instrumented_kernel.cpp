#include "collector/instrumentation/buffers/instrumented_kernel.h"

#include "support/error.h"

namespace proton {
namespace {

std::string fault_of(const InstrumentedKernel &kernel) {
  BufferLayout layout = kernel.layout();
  if (std::string fault = layout.fault(); !fault.empty())
    return fault;
  if (kernel.scratch_bytes % 8 != 0)
    return "its blocks of " + std::to_string(kernel.scratch_bytes) + " bytes are not aligned";
  if (layout.segments() > device::kMaxWarps)
    return std::to_string(layout.segments()) + " warps record, more than the " +
           std::to_string(device::kMaxWarps) + " that a program can have";
  if (kernel.programs.size() > device::kMaxRanges)
    return std::to_string(kernel.programs.size()) + " ranges of programs are more than " +
           std::to_string(device::kMaxRanges);
  return "";
}

} // namespace

void InstrumentedKernel::finish() {
  scope_parents.resize(scope_names.size(), kNoScope);
  if (std::string fault = fault_of(*this); !fault.empty())
    throw Error(ErrorCode::kUsage, "records of kernel '" + name + "' cannot be read: " + fault);
  scopes.clear();
  for (size_t id = 0; id < scope_names.size(); ++id)
    scopes.push_back({scope_names[id].c_str(), scope_parents[id]});
  BufferLayout described = layout();
  task.scratch_bytes = scratch_bytes;
  task.warps = warps;
  task.segments = described.segments();
  task.scopes = described.scopes;
  task.record_cost = record_cost_cycles;
  task.clock_bits = has_short_clock ? kShortClockBits : kClockBits;
  for (uint32_t segment = 0; segment < task.segments; ++segment)
    task.warp_ids[segment] = static_cast<uint8_t>(described.warp_of(segment));
  task.ranges = static_cast<uint32_t>(programs.size());
  for (size_t i = 0; i < programs.size(); ++i) {
    task.first[i] = programs[i].first;
    task.last[i] = programs[i].second;
  }
}

} // namespace proton
