#include "collector/cupti/pc_sampling/line_table.h"

#include <cstdlib>
#include <memory>
#include <utility>

namespace proton {

std::string source_line(const CuptiPcSampling &cupti, const std::vector<char> &cubin,
                        const KernelNames &kernel, uint64_t offset) {
  cupti::SassToSourceParameters parameters;
  parameters.cubin = cubin.data();
  parameters.cubin_size = cubin.size();
  parameters.function = kernel.raw.c_str();
  parameters.offset = offset;
  cupti::Result result = cupti.get_sass_to_source_correlation(&parameters);
  std::unique_ptr<char, decltype(&std::free)> file(parameters.file, &std::free);
  std::unique_ptr<char, decltype(&std::free)> folder(parameters.folder, &std::free);
  if (result != cupti::kSuccess || !file || !*file || parameters.line == 0)
    return {};
  std::string path = folder && *folder ? std::string(folder.get()) + "/" : "";
  return path + file.get() + ":" + std::to_string(parameters.line) + "@" + kernel.shown;
}

const char *LineTable::find(const CuptiPcSampling &cupti, const PcKey &pc,
                            const CubinStore::Cubin &cubin, const KernelNames &kernel) {
  auto known = lines_.find(pc);
  if (known != lines_.end())
    return known->second;
  if (!cubin || pc.offset == PcCounts::kNoOffset)
    return nullptr; // not kept: the cubin may be known the next time
  std::string text = source_line(cupti, *cubin, kernel, pc.offset);
  const char *line = text.empty() ? nullptr : texts_.insert(std::move(text)).first->c_str();
  lines_.emplace(pc, line);
  return line;
}

void LineTable::trim() {
  if (lines_.size() < kMostLines)
    return;
  lines_.clear();
  texts_.clear();
}

} // namespace proton
