#include "collector/cupti/pc_sampling/sampled_functions.h"

#include <algorithm>
#include <string_view>

#include "collector/gpu/work/kernel_table.h"
#include "driver/own_work.h"

namespace proton {

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
