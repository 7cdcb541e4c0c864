#include "collector/cupti/pc_sampling/line_table.h"

#include <cstdlib>
#include <memory>
#include <utility>

namespace proton {

void CubinStore::load(const void *context, uint32_t module, uint64_t crc, const char *image,
                      size_t bytes) {
  unload(context, module); // its end was not seen
  Entry &entry = cubins_[crc];
  if (!entry.image && bytes_ + bytes <= kMostBytes) {
    entry.image = std::make_shared<const std::vector<char>>(image, image + bytes);
    bytes_ += bytes;
  }
  ++entry.modules;
  modules_[{context, module}] = crc;
}

void CubinStore::release(uint64_t crc) {
  auto entry = cubins_.find(crc);
  if (entry != cubins_.end() && entry->second.modules != 0)
    --entry->second.modules;
}

void CubinStore::unload(const void *context, uint32_t module) {
  auto known = modules_.find({context, module});
  if (known == modules_.end())
    return;
  release(known->second);
  modules_.erase(known);
}

void CubinStore::unload_all(const void *context) {
  auto known = modules_.lower_bound({context, 0});
  while (known != modules_.end() && known->first.first == context) {
    release(known->second);
    known = modules_.erase(known);
  }
}

CubinStore::Cubin CubinStore::find(uint64_t crc) const {
  auto entry = cubins_.find(crc);
  return entry == cubins_.end() ? nullptr : entry->second.image;
}

void CubinStore::forget_unloaded() {
  std::erase_if(cubins_, [&](const auto &item) {
    if (item.second.modules != 0)
      return false;
    bytes_ -= item.second.image ? item.second.image->size() : 0;
    return true;
  });
}

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
