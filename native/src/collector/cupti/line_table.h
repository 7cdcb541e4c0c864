// The lines of instructions, each asked for once.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "collector/cupti/cubin_store.h"
#include "collector/cupti/pc_counts.h"
#include "driver/cupti_pc_sampling.h"

namespace proton {

/// Not synchronised.
class LineTable {
public:
  /// "folder/file:line@function"; null where the cubin does not tell. Valid until `trim`.
  /// `function` is the name in the cubin, `shown` that in the text.
  const char *find(const CuptiPcSampling &cupti, const PcKey &pc, const CubinStore::Cubin &cubin,
                   const std::string &function, const std::string &shown);
  /// Forgets everything once that is much.
  void trim();
  size_t size() const { return lines_.size(); }

private:
  static constexpr size_t kMostLines = size_t{1} << 19;
  std::unordered_map<PcKey, const char *, PcKeyHash> lines_;
  std::unordered_set<std::string> texts_; ///< addresses stay
};

/// What CUPTI knows of the instruction; empty for nothing.
std::string source_line(const CuptiPcSampling &cupti, const std::vector<char> &cubin,
                        const std::string &function, uint64_t offset, const std::string &shown);

} // namespace proton
