#include "record/code_table.h"

#include <array>
#include <atomic>
#include <limits>
#include <mutex>
#include <unordered_map>

namespace proton {
namespace {

constexpr size_t kCodes = size_t{std::numeric_limits<uint16_t>::max()} + 1;

struct CodeTable {
  std::mutex mutex;
  std::unordered_map<uint64_t, uint16_t> numbers;
  std::array<std::atomic<uint64_t>, kCodes> hashes{};
};

CodeTable &table() {
  static CodeTable *instance = new CodeTable; // outlives threads of the target
  return *instance;
}

} // namespace

uint16_t intern_code(uint64_t hash) {
  if (hash == 0)
    return 0;
  CodeTable &codes = table();
  std::lock_guard lock(codes.mutex);
  auto found = codes.numbers.find(hash);
  if (found != codes.numbers.end())
    return found->second;
  size_t next = codes.numbers.size() + 1;
  if (next == kCodes)
    return 0;
  auto number = static_cast<uint16_t>(next);
  codes.hashes[next].store(hash, std::memory_order_release);
  codes.numbers.emplace(hash, number);
  return number;
}

uint64_t code_hash(uint16_t code) noexcept {
  return code == 0 ? 0 : table().hashes[code].load(std::memory_order_acquire);
}

} // namespace proton
