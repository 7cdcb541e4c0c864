// The lines of instructions, each looked up once.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "collector/cupti/cubins/cubin_lines.h"
#include "collector/cupti/cubins/cubin_store.h"
#include "collector/cupti/pc_sampling/pc_counts.h"
#include "driver/cupti/cupti_pc_sampling.h"

namespace proton {

/// A kernel as its cubin and its readers call it.
struct KernelNames {
  const std::string &raw;
  const std::string &shown;
};

/// Texts "folder/file:line@function": the line in the kernel, the line of what was inlined there,
/// and so on to the line of the instruction.
using LineChain = std::vector<const char *>;

/// Not synchronised.
class LineTable {
public:
  /// Null if the cubin does not say. Valid until `trim`.
  const LineChain *find(const CuptiPcSampling &cupti, const PcKey &pc,
                        const CubinStore::Cubin &cubin, const KernelNames &kernel);
  /// Forgets everything once there is much.
  void trim();
  size_t size() const { return lines_.size(); }

private:
  static constexpr size_t kMostLines = size_t{1} << 19;
  static constexpr size_t kMostCubinBytes = size_t{32} << 20;
  const CubinLines &lines_of(uint64_t crc, const CubinStore::Cubin &cubin);

  std::unordered_map<PcKey, const LineChain *, PcKeyHash> lines_;
  std::unordered_set<std::string> texts_; ///< addresses stay
  std::set<LineChain> chains_;            ///< same
  std::map<uint64_t, CubinLines> cubins_; ///< by CRC
  size_t cubin_bytes_ = 0;
};

/// What is known of the instruction at an offset, as texts of a chain; may be empty.
std::vector<std::string> source_lines(const CuptiPcSampling &cupti, const CubinLines &cubin,
                                      const KernelNames &kernel, uint64_t offset);

} // namespace proton
