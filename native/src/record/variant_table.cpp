#include "record/variant_table.h"

#include <deque>
#include <map>
#include <mutex>
#include <string>

#include "support/fork_locks.h"

namespace proton {
namespace {

constexpr size_t kMaxVariants = 65536;

struct VariantTable {
  VariantTable() { guard_across_fork(mutex, LockRank::kVariants); }
  std::mutex mutex;
  std::map<std::string, int32_t> positions;
  std::deque<VariantRecord> records; // a deque keeps addresses while it grows
  std::deque<std::string> signatures;
};

VariantTable &variant_table() {
  static VariantTable *instance = new VariantTable; // the target's threads may need it to the end
  return *instance;
}

std::string key_of(const VariantRecord &variant) {
  std::string key = std::to_string(variant.code_hash);
  for (int i = 0; i < 3; ++i)
    key += ',' + std::to_string(variant.grid[i]) + ',' + std::to_string(variant.block[i]);
  key += ',' + std::to_string(variant.shared_bytes) + ',' + std::to_string(variant.registers);
  return key + ',' + (variant.signature ? variant.signature : "");
}

} // namespace

int32_t intern_variant(const VariantRecord &variant) {
  std::string key = key_of(variant);
  VariantTable &variants = variant_table();
  std::lock_guard lock(variants.mutex);
  auto found = variants.positions.find(key);
  if (found != variants.positions.end())
    return found->second;
  if (variants.records.size() == kMaxVariants)
    return -1;
  auto position = static_cast<int32_t>(variants.records.size());
  variants.records.push_back(variant);
  variants.signatures.emplace_back(variant.signature ? variant.signature : "");
  variants.records.back().signature = variants.signatures.back().c_str();
  variants.records.back().raw_name = nullptr; // kernels of this table are named by their frames
  variants.records.back().config = nullptr;   // what is interned here was not compiled
  variants.positions.emplace(std::move(key), position);
  return position;
}

const VariantRecord *find_variant(int32_t position) {
  VariantTable &variants = variant_table();
  if (position < 0)
    return nullptr;
  std::lock_guard lock(variants.mutex);
  return &variants.records[static_cast<size_t>(position)];
}

} // namespace proton
