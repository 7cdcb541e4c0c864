#include "collector/cupti/pc_sampling/line_table.h"

#include <cstdlib>
#include <string_view>
#include <utility>

#include "collector/gpu/work/kernel_table.h"

namespace proton {
namespace {

std::string text_of(const SourcePlace &place, const std::string &kernel) {
  std::string function = place.function.empty() ? kernel : demangle(place.function.c_str());
  return place.file + ":" + std::to_string(place.line) + "@" + function;
}

/// The innermost line as CUPTI reports it; line 0 if it does not.
SourcePlace ask(const CuptiPcSampling &cupti, const std::vector<char> &cubin,
                const std::string &function, uint64_t offset) {
  cupti::SassToSourceParameters parameters;
  parameters.cubin = cubin.data();
  parameters.cubin_size = cubin.size();
  parameters.function = function.c_str();
  parameters.offset = offset;
  cupti::Result result = cupti.get_sass_to_source_correlation(&parameters);
  std::unique_ptr<char, decltype(&std::free)> file(parameters.file, &std::free);
  std::unique_ptr<char, decltype(&std::free)> folder(parameters.folder, &std::free);
  if (result != cupti::kSuccess || !file || !*file || parameters.line == 0)
    return {};
  std::string path = folder && *folder ? std::string(folder.get()) + "/" : "";
  return {path + file.get(), parameters.line, {}};
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// CUPTI is right where both differ, so that a table which we misread shows nothing.
bool is_same(const SourcePlace &reported, const SourcePlace &read) {
  return reported.line == read.line && last_part(reported.file) == last_part(read.file);
}

} // namespace

std::vector<std::string> source_lines(const CuptiPcSampling &cupti, const CubinLines &cubin,
                                      const KernelNames &kernel, uint64_t offset) {
  SourcePlace reported = ask(cupti, cubin.image(), kernel.raw, offset);
  std::vector<SourcePlace> places = cubin.places(kernel.raw, offset);
  if (reported.line != 0 && (places.empty() || !is_same(reported, places.back())))
    places.assign(1, reported);
  uint32_t ptx_line = places.empty() ? cubin.ptx_line(kernel.raw, offset) : 0;
  if (ptx_line != 0)
    places.push_back({kernel.raw + ".ptx", ptx_line, {}});
  std::vector<std::string> texts;
  for (const SourcePlace &place : places)
    texts.push_back(text_of(place, kernel.shown));
  return texts;
}

const CubinLines &LineTable::lines_of(uint64_t crc, const CubinStore::Cubin &cubin) {
  auto known = cubins_.find(crc);
  if (known == cubins_.end()) {
    known = cubins_.emplace(crc, cubin).first;
    cubin_bytes_ += known->second.bytes();
  }
  return known->second;
}

const LineChain *LineTable::find(const CuptiPcSampling &cupti, const PcKey &pc,
                                 const CubinStore::Cubin &cubin, const KernelNames &kernel) {
  auto known = lines_.find(pc);
  if (known != lines_.end())
    return known->second;
  if (!cubin || pc.offset == PcCounts::kNoOffset)
    return nullptr; // not kept: the cubin may be known the next time
  LineChain chain;
  for (std::string &text : source_lines(cupti, lines_of(pc.of.crc, cubin), kernel, pc.offset))
    chain.push_back(texts_.insert(std::move(text)).first->c_str());
  const LineChain *found = chain.empty() ? nullptr : &*chains_.insert(std::move(chain)).first;
  lines_.emplace(pc, found);
  return found;
}

void LineTable::trim() {
  if (lines_.size() >= kMostLines) {
    lines_.clear();
    chains_.clear();
    texts_.clear();
  }
  if (lines_.size() == 0 || cubin_bytes_ >= kMostCubinBytes) {
    cubins_.clear();
    cubin_bytes_ = 0;
  }
}

} // namespace proton
