#include "collector/cupti/pc_sampling/line_table.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "collector/gpu/work/kernel_table.h"
#include "driver/own_work.h"

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

void SampledFunctions::add(Line &line, const std::vector<PcCounts::Count> &counts,
                           const StallNames &names) {
  for (const PcCounts::Count &count : counts) {
    size_t reason = StallNames::reason(count.reason);
    StallCount &sum = line.sums[reason];
    sum.metric = names[reason].metric;
    sum.not_issued_metric = names[reason].not_issued_metric;
    bool is_not_issued = StallNames::is_not_issued(count.reason);
    (is_not_issued ? sum.not_issued : sum.samples) += count.samples;
    (is_not_issued ? not_issued_ : samples_) += count.samples;
    if (!is_not_issued && !line.place)
      without_line_ += count.samples;
  }
}

void SampledFunctions::settle(Function &function) {
  for (auto &[place, line] : function.by_place) {
    for (const auto &[reason, sum] : line.sums)
      line.stalls.push_back(sum);
    function.lines.push_back({place, line.stalls});
  }
  std::sort(function.lines.begin(), function.lines.end(), [](const PcLine &one, const PcLine &two) {
    return std::string_view(one.place ? one.place : "") <
           std::string_view(two.place ? two.place : "");
  });
}

SampledFunctions::SampledFunctions(const PcCounts &counts,
                                   const std::map<uint64_t, CubinStore::Cubin> &cubins,
                                   const StallNames &names, const CuptiPcSampling &cupti,
                                   LineTable &lines) {
  for (const auto &[pc, each] : counts.counts()) {
    const std::string &name = counts.name(pc.of);
    if (is_own_kernel(name.c_str())) {
      for (const PcCounts::Count &count : each)
        own_ += StallNames::is_not_issued(count.reason) ? 0 : count.samples;
      continue;
    }
    Function &function = functions_[name];
    if (function.raw_name.empty()) {
      function.raw_name = name;
      function.shown = demangle(name.c_str());
    }
    auto cubin = cubins.find(pc.of.crc);
    const char *place = lines.find(cupti, pc, cubin == cubins.end() ? nullptr : cubin->second,
                                   {function.raw_name, function.shown});
    Line &to = function.by_place[place];
    to.place = place;
    add(to, each, names);
  }
  for (auto &[name, function] : functions_)
    settle(function);
}

std::vector<PcSampleRecord> SampledFunctions::records() const {
  std::vector<PcSampleRecord> records;
  for (const auto &[name, function] : functions_) {
    PcSampleRecord record;
    record.kernel = function.shown.c_str();
    record.raw_name = function.raw_name.c_str();
    record.lines = function.lines;
    records.push_back(record);
  }
  return records;
}

} // namespace proton
