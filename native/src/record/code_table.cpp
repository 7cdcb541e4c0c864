#include "record/code_table.h"

#include <array>
#include <atomic>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "support/fork_locks.h"

namespace proton {
namespace {

constexpr size_t kCodes = size_t{std::numeric_limits<uint16_t>::max()} + 1;

struct CodeTable {
  std::mutex mutex;
  std::map<std::pair<uint64_t, std::string>, uint16_t> numbers; ///< its keys own the texts
  std::array<std::atomic<uint64_t>, kCodes> hashes{};
  std::array<std::atomic<const char *>, kCodes> configs{};
};

CodeTable &code_table() {
  static CodeTable *instance = new CodeTable; // the target's threads may need it to the end
  return *instance;
}

} // namespace

uint16_t intern_code(uint64_t hash, std::string_view config) {
  if (hash == 0)
    return 0;
  CodeTable &codes = code_table();
  std::lock_guard lock(codes.mutex);
  std::pair<uint64_t, std::string> key(hash, config);
  auto found = codes.numbers.find(key);
  if (found != codes.numbers.end())
    return found->second;
  size_t next = codes.numbers.size() + 1;
  if (next == kCodes)
    return 0;
  auto number = static_cast<uint16_t>(next);
  auto added = codes.numbers.emplace(std::move(key), number).first;
  if (!config.empty())
    codes.configs[next].store(added->first.second.c_str(), std::memory_order_release);
  codes.hashes[next].store(hash, std::memory_order_release);
  return number;
}

uint64_t code_hash(uint16_t code) noexcept {
  return code == 0 ? 0 : code_table().hashes[code].load(std::memory_order_acquire);
}

const char *code_config(uint16_t code) noexcept {
  return code == 0 ? nullptr : code_table().configs[code].load(std::memory_order_acquire);
}

namespace {

constexpr size_t kMostMixes = 65536;

struct MixTable {
  MixTable() { guard_across_fork(mutex, LockRank::kInstructions); }
  std::mutex mutex;
  std::unordered_map<uint64_t, InstructionMix> mixes; // keeps addresses while it grows
};

MixTable &mix_table() {
  static MixTable *instance = new MixTable; // the target's threads may need it to the end
  return *instance;
}

} // namespace

void note_instructions(uint64_t code_hash, const InstructionMix &mix) {
  MixTable &table = mix_table();
  std::lock_guard lock(table.mutex);
  if (code_hash != 0 && table.mixes.size() < kMostMixes)
    table.mixes.emplace(code_hash, mix);
}

const InstructionMix *find_instructions(uint64_t code_hash) {
  MixTable &table = mix_table();
  std::lock_guard lock(table.mutex);
  auto found = table.mixes.find(code_hash);
  return found == table.mixes.end() ? nullptr : &found->second;
}

} // namespace proton
