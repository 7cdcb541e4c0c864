#include "collector/cupti/cubins/ptx_notes.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include "support/fork_locks.h"

namespace proton {
namespace {

// Deeper than compilers inline.
constexpr size_t kMostPtxPlaces = 64;

std::string_view trimmed(std::string_view text) {
  size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos)
    return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

/// Removes a number from the start of a text; 0 if there is none.
uint32_t take_number(std::string_view &text) {
  text = trimmed(text);
  uint32_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc())
    return 0;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

/// "a.py:9:15" -> a.py, 9; line 0 for anything else.
PtxNotes::Place read_place(std::string_view text) {
  size_t column = text.rfind(':');
  size_t line = column == 0 || column == std::string_view::npos ? std::string_view::npos
                                                                : text.rfind(':', column - 1);
  if (line == std::string_view::npos)
    return {};
  std::string_view number = text.substr(line + 1, column - line - 1);
  return {std::string(text.substr(0, line)), take_number(number)};
}

/// Identifies a cubin, whatever it is packed in.
uint64_t key_of(const CubinImage &cubin) {
  uint64_t key = 0;
  for (const char *name : {".debug_line", ".nv_debug_line_sass", ".nv_debug_ptx_txt"}) {
    std::span<const char> part = cubin.section(name);
    key = key * 0x9E3779B97F4A7C15ull +
          std::hash<std::string_view>{}(std::string_view(part.data(), part.size()));
  }
  return key;
}

} // namespace

PtxNotes::PtxNotes(std::string_view ptx) {
  for (uint32_t number = 1; !ptx.empty(); ++number) {
    std::string_view line = trimmed(ptx.substr(0, ptx.find('\n')));
    ptx.remove_prefix(std::min(ptx.find('\n'), ptx.size() - 1) + 1);
    if (line.starts_with(".loc"))
      read_loc(line.substr(4), number);
    else if (line.starts_with(".file"))
      read_file(line.substr(5));
  }
  complete();
}

void PtxNotes::read_loc(std::string_view rest, uint32_t ptx_line) {
  std::vector<Place> &places = by_line_[ptx_line]; // also where nothing is inlined
  uint32_t file = take_number(rest);
  uint32_t line = take_number(rest);
  size_t comment = rest.find("//");
  if (comment == std::string_view::npos || line == 0)
    return;
  rest = trimmed(rest.substr(comment + 2));
  while (places.size() < kMostPtxPlaces) {
    size_t next = rest.find(" @[ ");
    Place place = read_place(rest.substr(0, std::min(next, rest.find(" ]"))));
    if (place.second == 0) { // another comment
      places.clear();
      return;
    }
    places.push_back(std::move(place));
    if (next == std::string_view::npos)
      break;
    rest.remove_prefix(next + 4);
  }
  if (places.size() < 2 || places.front().second != line) {
    places.clear();
    return;
  }
  places.front().first = "\n" + std::to_string(file); // files are named behind the code
  std::reverse(places.begin(), places.end());
}

void PtxNotes::read_file(std::string_view rest) {
  uint32_t number = take_number(rest);
  size_t begin = rest.find('"');
  size_t end = rest.rfind('"');
  if (number != 0 && begin != std::string_view::npos && end > begin)
    files_[number] = std::string(rest.substr(begin + 1, end - begin - 1));
}

/// The path of the only file of that name, or the name.
std::string PtxNotes::path_of(std::string_view name) const {
  if (name.starts_with('\n')) {
    std::string_view number = name.substr(1);
    auto known = files_.find(take_number(number));
    return known == files_.end() ? std::string() : known->second;
  }
  const std::string *found = nullptr;
  for (const auto &[number, path] : files_) {
    bool is_it = path == name || path.ends_with("/" + std::string(name));
    if (is_it && found && *found != path)
      return std::string(name);
    if (is_it)
      found = &path;
  }
  return found ? *found : std::string(name);
}

void PtxNotes::complete() {
  for (auto &[line, places] : by_line_) {
    for (Place &place : places) {
      place.first = path_of(place.first);
      bytes_ += sizeof(Place) + place.first.capacity();
    }
    bytes_ += 64; // of the map
  }
  bool has_any = std::any_of(by_line_.begin(), by_line_.end(),
                             [](const auto &item) { return !item.second.empty(); });
  if (!has_any) {
    by_line_.clear();
    bytes_ = 0;
  }
  files_.clear();
}

const std::vector<PtxNotes::Place> &PtxNotes::find(uint32_t ptx_line) const {
  static const std::vector<Place> none;
  auto next = by_line_.upper_bound(ptx_line);
  return next == by_line_.begin() ? none : std::prev(next)->second;
}

PtxNoteStore &PtxNoteStore::instance() {
  static PtxNoteStore *store = [] {
    auto *made = new PtxNoteStore; // callbacks may come at any time
    guard_across_fork(made->mutex_, LockRank::kPtxNotes);
    return made;
  }();
  return *store;
}

void PtxNoteStore::add(const CubinImage &cubin, std::string_view ptx) {
  auto notes = std::make_shared<const PtxNotes>(ptx);
  std::lock_guard lock(mutex_);
  if (notes->bytes() == 0 || bytes_ + notes->bytes() > kMostBytes)
    return;
  if (notes_.emplace(key_of(cubin), notes).second)
    bytes_ += notes->bytes();
}

std::shared_ptr<const PtxNotes> PtxNoteStore::find(const CubinImage &cubin) const {
  std::lock_guard lock(mutex_);
  if (notes_.empty())
    return nullptr;
  auto found = notes_.find(key_of(cubin));
  return found == notes_.end() ? nullptr : found->second;
}

} // namespace proton
