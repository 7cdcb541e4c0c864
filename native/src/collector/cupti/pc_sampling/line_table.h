// The lines of instructions, each looked up once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "collector/cupti/pc_sampling/pc_counts.h"
#include "driver/cupti/cupti_pc_sampling.h"
#include "record/record.h"

namespace proton {

// Copies of the cubins that are loaded, for the lines of their instructions.

/// By the CRC that samples name. Modules with the same cubin share it; an unloaded one stays until
/// the samples from before were shown. Not synchronised.
class CubinStore {
public:
  using Cubin = std::shared_ptr<const std::vector<char>>;

  /// Notes that the context loaded it as this module. Past a limit the bytes are not kept, and its
  /// samples have no lines.
  void load(const void *context, uint32_t module, uint64_t crc, const char *image, size_t bytes);
  void unload(const void *context, uint32_t module);
  /// Unloads all modules of a context that ends.
  void unload_all(const void *context);
  /// Null if it is not kept.
  Cubin find(uint64_t crc) const;
  /// Forgets cubins that no module has any more.
  void forget_unloaded();

  size_t size() const { return cubins_.size(); }
  size_t bytes() const { return bytes_; }

private:
  static constexpr size_t kMostBytes = size_t{1} << 30;
  struct Entry {
    Cubin image;
    uint64_t modules = 0; ///< that have it
  };
  using Module = std::pair<const void *, uint32_t>;
  void release(uint64_t crc);

  std::map<uint64_t, Entry> cubins_;
  std::map<Module, uint64_t> modules_; ///< -> CRC
  size_t bytes_ = 0;
};

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

// Counts as records, by function and line.

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
