#include "record/instruction_mix.h"

#include <mutex>
#include <unordered_map>

#include "support/fork_locks.h"

namespace proton {
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
