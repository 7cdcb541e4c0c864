#include "collector/cupti/cubins/cubin_lines.h"

#include <algorithm>
#include <utility>

namespace proton {
namespace {

// Deeper than compilers inline. A chain ends anyway: each row is inlined into an earlier one.
constexpr size_t kMostPlaces = 64;

} // namespace

CubinLines::Rows::Rows(const CubinImage &image, std::string_view section)
    : program_(image, section) {
  for (const LineSequence &sequence : program_.sequences())
    by_section_.emplace(sequence.section, &sequence);
}

std::pair<const LineSequence *, size_t>
CubinLines::Rows::find(const CubinImage::Place &place) const {
  auto [first, last] = by_section_.equal_range(place.section);
  for (auto each = first; each != last; ++each) {
    const LineSequence &sequence = *each->second;
    if (place.address >= sequence.end)
      continue;
    auto next = std::upper_bound(
        sequence.rows.begin(), sequence.rows.end(), place.address,
        [](uint64_t address, const LineRow &row) { return address < row.address; });
    if (next != sequence.rows.begin())
      return {&sequence, static_cast<size_t>(next - sequence.rows.begin())};
  }
  return {nullptr, 0};
}

CubinLines::CubinLines(CubinStore::Cubin image)
    : bytes_(std::move(image)), image_(*bytes_), source_(image_, ".debug_line"),
      ptx_(image_, ".nv_debug_line_sass") {
  if (!ptx_.program().sequences().empty())
    notes_ = PtxNoteStore::instance().find(image_);
  if (!source_.program().sequences().empty() || !ptx_.program().sequences().empty())
    functions_ = image_.functions();
}

CubinImage::Place CubinLines::place_of(std::string_view function, uint64_t offset) const {
  auto known = functions_.find(function);
  if (known == functions_.end())
    return {};
  return {known->second.section, known->second.address + offset};
}

std::vector<SourcePlace> CubinLines::places(std::string_view function, uint64_t offset) const {
  auto [sequence, number] = source_.find(place_of(function, offset));
  std::vector<SourcePlace> found;
  while (number != 0 && found.size() < kMostPlaces) {
    const LineRow &row = sequence->rows[number - 1];
    const std::string &file = source_.program().file(row.file);
    if (file.empty() || row.line == 0)
      return {};
    found.push_back({file, row.line, std::string(row.function)});
    number = row.inlined_at;
  }
  std::reverse(found.begin(), found.end());
  if (found.size() == 1)
    add_callers(found, ptx_line(function, offset));
  return found;
}

/// Adds what the PTX says of inlining, if it names the same line.
void CubinLines::add_callers(std::vector<SourcePlace> &places, uint32_t ptx_line) const {
  if (!notes_ || ptx_line == 0)
    return;
  const std::vector<PtxNotes::Place> &chain = notes_->find(ptx_line);
  SourcePlace &innermost = places.back();
  if (chain.empty() || chain.back().second != innermost.line ||
      chain.back().first != innermost.file)
    return;
  std::vector<SourcePlace> callers;
  for (const auto &[file, line] : chain)
    callers.push_back({file, line, {}});
  places = std::move(callers);
}

uint32_t CubinLines::ptx_line(std::string_view function, uint64_t offset) const {
  auto [sequence, number] = ptx_.find(place_of(function, offset));
  return number == 0 ? 0 : sequence->rows[number - 1].line;
}

size_t CubinLines::bytes() const {
  return bytes_->size() + source_.program().bytes() + ptx_.program().bytes() +
         functions_.size() * 2 * sizeof(CubinImage::Place);
}

} // namespace proton
