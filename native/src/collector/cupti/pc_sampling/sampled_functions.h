// Counts as records, by function and line.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collector/cupti/pc_sampling/line_table.h"
#include "collector/cupti/pc_sampling/pc_counts.h"
#include "record/pc_sample_record.h"

namespace proton {

/// Owns what its records point to.
class SampledFunctions {
public:
  /// `cubins` has the known cubins of the counted functions. The profiler's own kernels are left
  /// out.
  SampledFunctions(const PcCounts &counts, const std::map<uint64_t, CubinStore::Cubin> &cubins,
                   const StallNames &names, const CuptiPcSampling &cupti, LineTable &lines);
  std::vector<PcSampleRecord> records() const;

  uint64_t samples() const { return samples_; }
  uint64_t not_issued() const { return not_issued_; }
  uint64_t own() const { return own_; }
  uint64_t without_line() const { return without_line_; }

private:
  using Stalls = std::map<size_t, StallCount>; ///< by reason
  struct Line {
    const char *place = nullptr;
    Stalls sums;
    std::vector<StallCount> stalls;
  };
  struct Function {
    std::string raw_name;
    std::string shown;
    std::map<const char *, Line> by_place; ///< null: no line is known
    std::vector<PcLine> lines;
  };
  void add(Line &line, const std::vector<PcCounts::Count> &counts, const StallNames &names);
  static void settle(Function &function);

  std::map<std::string, Function> functions_; ///< by raw name: a cubin may be loaded again
  uint64_t samples_ = 0;
  uint64_t not_issued_ = 0;
  uint64_t own_ = 0;
  uint64_t without_line_ = 0;
};

} // namespace proton
