// The lines of instructions, each looked up once.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "collector/cupti/pc_sampling/cubin_store.h"
#include "collector/cupti/pc_sampling/pc_counts.h"
#include "driver/cupti/cupti_pc_sampling.h"

namespace proton {

/// A kernel as its cubin and its readers call it.
struct KernelNames {
  const std::string &raw;
  const std::string &shown;
};

/// Not synchronised.
class LineTable {
public:
  /// "folder/file:line@function"; null if the library does not say. Valid until `trim`, and one
  /// address for each text.
  const char *find(const CuptiPcSampling &cupti, const PcKey &pc, const CubinStore::Cubin &cubin,
                   const KernelNames &kernel);
  /// Forgets everything once there is much.
  void trim();
  size_t size() const { return lines_.size(); }

private:
  static constexpr size_t kMostLines = size_t{1} << 19;

  std::unordered_map<PcKey, const char *, PcKeyHash> lines_;
  std::unordered_set<std::string> texts_; ///< addresses stay
};

/// The line of the instruction at an offset, as CUPTI reports it; empty if it does not.
std::string source_line(const CuptiPcSampling &cupti, const std::vector<char> &cubin,
                        const KernelNames &kernel, uint64_t offset);

} // namespace proton
