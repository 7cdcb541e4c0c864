#include "collector/cupti/cubins/line_program.h"

#include <algorithm>
#include <utility>

#include "collector/cupti/cubins/byte_cursor.h"

namespace proton {
namespace {

constexpr std::string_view kTexts = ".debug_str";

// DWARF 2, section 6.2.5, and one opcode of NVIDIA's.
enum Opcode : uint8_t {
  kExtended = 0,
  kCopy = 1,
  kAdvanceAddress = 2,
  kAdvanceLine = 3,
  kSetFile = 4,
  kConstAddAddress = 8,
  kFixedAdvanceAddress = 9,
};
enum ExtendedOpcode : uint8_t {
  kEndSequence = 1,
  kSetAddress = 2,
  kInlinedCall = 0x90, ///< row that is called from, offset of the function's name in .debug_str
};

} // namespace

struct LineProgram::Unit {
  uint8_t smallest_instruction = 1;
  int8_t line_base = 0;
  uint8_t line_range = 1;
  uint8_t opcode_base = 1;
  std::vector<uint8_t> operands; ///< of standard opcodes, from 1
  uint64_t texts = 0;            ///< where the unit's part of .debug_str begins
  size_t first_file = 0;         ///< number in files_ of its file 1
  size_t files = 0;
};

struct LineProgram::State {
  CubinImage::Place at;
  uint64_t file = 1;
  uint64_t line = 1; ///< modulo 2^64
  uint64_t inlined_at = 0;
  std::string_view function;
  size_t first_file = 0;
  size_t files = 0;
};

LineProgram::LineProgram(const CubinImage &image, std::string_view section)
    : bytes_of_section_(image.section(section)), texts_(image.section(kTexts)),
      places_(image.relocations(section)) {
  size_t at = 0;
  while (at < bytes_of_section_.size())
    at = read_unit(at);
  places_.clear();
  if (units_ > 1) // NVIDIA's linker joins the names and leaves their offsets alone
    for (LineSequence &sequence : sequences_)
      for (LineRow &row : sequence.rows)
        row.function = {};
  for (const std::string &file : files_)
    bytes_ += sizeof(std::string) + file.capacity();
  bytes_ += rows_ * sizeof(LineRow);
}

const std::string &LineProgram::file(uint32_t number) const {
  return files_[number < files_.size() ? number : 0];
}

/// Returns the offset of the unit's part of .debug_str, which NVIDIA's tools note behind the files.
uint64_t LineProgram::read_files(ByteCursor &cursor, size_t program) {
  std::vector<std::string> folders{""};
  while (cursor.is_sound() && cursor.at() < program) {
    std::string_view folder = cursor.text();
    if (folder.empty())
      break;
    folders.emplace_back(folder);
  }
  while (cursor.is_sound() && cursor.at() < program) {
    std::string_view name = cursor.text();
    if (name.empty())
      break;
    uint64_t folder = cursor.unsigned_leb();
    cursor.unsigned_leb(); // time of the last change
    cursor.unsigned_leb(); // size
    bool is_whole = name.front() == '/' || folder >= folders.size() || folders[folder].empty();
    files_.push_back(is_whole ? std::string(name) : folders[folder] + "/" + std::string(name));
  }
  return cursor.at() + sizeof(uint32_t) <= program ? cursor.number<uint32_t>() : 0;
}

/// Returns the offset of the next unit.
size_t LineProgram::read_unit(size_t at) {
  ByteCursor whole(bytes_of_section_.subspan(at));
  uint64_t size = whole.number<uint32_t>();
  size_t end = at + sizeof(uint32_t) + size;
  if (!whole.is_sound() || end > bytes_of_section_.size())
    return bytes_of_section_.size();
  ByteCursor cursor(bytes_of_section_.first(end));
  cursor.seek(at + sizeof(uint32_t));
  auto version = cursor.number<uint16_t>();
  if (version < 2 || version > 3)
    return end; // compilers for GPUs do not write it
  size_t program = cursor.number<uint32_t>();
  program += cursor.at();
  Unit unit;
  unit.smallest_instruction = cursor.byte();
  cursor.byte(); // whether rows are statements
  unit.line_base = static_cast<int8_t>(cursor.byte());
  unit.line_range = cursor.byte();
  unit.opcode_base = cursor.byte();
  for (unsigned opcode = 1; opcode < unit.opcode_base; ++opcode)
    unit.operands.push_back(cursor.byte());
  if (!cursor.is_sound() || program > end || unit.line_range == 0 || unit.opcode_base == 0)
    return end;
  unit.first_file = files_.size();
  unit.texts = read_files(cursor, program);
  unit.files = files_.size() - unit.first_file;
  if (!cursor.is_sound())
    return end;
  ++units_;
  cursor.seek(program);
  run(cursor, unit);
  return end;
}

void LineProgram::run(ByteCursor &cursor, const Unit &unit) {
  State fresh;
  fresh.first_file = unit.first_file;
  fresh.files = unit.files;
  State state = fresh;
  open_ = {};
  while (!cursor.is_at_end() && rows_ < kMostRows) {
    uint8_t opcode = cursor.byte();
    if (opcode >= unit.opcode_base) {
      int step = opcode - unit.opcode_base;
      state.at.address +=
          uint64_t{unit.smallest_instruction} * static_cast<uint64_t>(step / unit.line_range);
      state.line += static_cast<uint64_t>(int64_t{unit.line_base} + step % unit.line_range);
      add_row(state);
    } else if (opcode == kExtended) {
      if (run_extended(cursor, unit, state))
        state = fresh;
    } else if (!run_standard(cursor, unit, opcode, state)) {
      break;
    }
    if (!cursor.is_sound())
      break;
  }
}

bool LineProgram::run_extended(ByteCursor &cursor, const Unit &unit, State &state) {
  uint64_t size = cursor.unsigned_leb();
  size_t begin = cursor.at();
  uint8_t opcode = size == 0 ? uint8_t{0} : cursor.byte();
  if (opcode == kEndSequence) {
    open_.end = state.at.address;
    sequences_.push_back(std::exchange(open_, {}));
  } else if (opcode == kSetAddress) {
    auto place = places_.find(cursor.at());
    auto address = cursor.number<uint64_t>();
    if (place != places_.end())
      state.at = {place->second.section, place->second.address + address};
    else
      state.at.address = address;
  } else if (opcode == kInlinedCall) {
    state.inlined_at = cursor.unsigned_leb();
    uint64_t name = unit.texts + cursor.unsigned_leb();
    state.function = {};
    if (state.inlined_at != 0 && name < texts_.size())
      state.function = ByteCursor(texts_.subspan(name)).text();
  }
  cursor.seek(size > bytes_of_section_.size() ? bytes_of_section_.size() + 1 : begin + size);
  return opcode == kEndSequence;
}

bool LineProgram::run_standard(ByteCursor &cursor, const Unit &unit, uint8_t opcode, State &state) {
  uint64_t smallest = unit.smallest_instruction;
  switch (opcode) {
  case kCopy:
    add_row(state);
    break;
  case kAdvanceAddress:
    state.at.address += cursor.unsigned_leb() * smallest;
    break;
  case kAdvanceLine:
    state.line += static_cast<uint64_t>(cursor.signed_leb());
    break;
  case kSetFile:
    state.file = cursor.unsigned_leb();
    break;
  case kConstAddAddress:
    state.at.address +=
        smallest * static_cast<uint64_t>((255 - unit.opcode_base) / unit.line_range);
    break;
  case kFixedAdvanceAddress:
    state.at.address += cursor.number<uint16_t>();
    break;
  default: // says nothing of lines
    for (uint8_t i = 0; i < unit.operands[opcode - 1]; ++i)
      cursor.unsigned_leb();
  }
  return cursor.is_sound();
}

void LineProgram::add_row(const State &state) {
  LineRow row;
  uint64_t last = open_.rows.empty() ? 0 : open_.rows.back().address;
  row.address = std::max(state.at.address, last); // addresses that fall are nonsense
  bool has_file = state.file >= 1 && state.file <= state.files;
  row.file = has_file ? static_cast<uint32_t>(state.first_file + state.file - 1) : 0;
  row.line = state.line <= INT32_MAX ? static_cast<uint32_t>(state.line) : 0;
  // A row may only be inlined into a row that exists, so that chains end.
  bool is_inlined = state.inlined_at >= 1 && state.inlined_at <= open_.rows.size();
  row.inlined_at = is_inlined ? static_cast<uint32_t>(state.inlined_at) : 0;
  row.function = is_inlined ? state.function : std::string_view();
  open_.section = state.at.section;
  open_.rows.push_back(row);
  ++rows_;
}

} // namespace proton
