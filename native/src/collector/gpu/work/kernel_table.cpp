#include "collector/gpu/work/kernel_table.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "collector/gpu/launches/launch_thread.h"
#include "driver/own_work.h"
#include "record/code_table.h"

namespace proton {
namespace {

constexpr size_t kMaxKernels = 65536;

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 29);
}

std::unique_ptr<KnownKernel> known_kernel(const KernelShape &shape, const char *name,
                                          uint64_t identity) {
  auto kernel = std::make_unique<KnownKernel>();
  kernel->identity = identity;
  kernel->shape = shape;
  kernel->is_own = is_own_kernel(name);
  kernel->raw_name = name;
  kernel->name = demangle(name);
  VariantRecord &variant = kernel->variant;
  variant.code_hash = KernelCodes::instance().find_name(kernel->raw_name);
  std::copy(std::begin(shape.grid), std::end(shape.grid), std::begin(variant.grid));
  std::copy(std::begin(shape.block), std::end(shape.block), std::begin(variant.block));
  variant.shared_bytes = shape.shared_bytes;
  variant.registers = shape.registers;
  variant.local_bytes = shape.local_bytes;
  variant.raw_name = kernel->name == kernel->raw_name ? nullptr : kernel->raw_name.c_str();
  return kernel;
}

} // namespace

std::string demangle(const char *name) {
  if (std::strncmp(name, "_Z", 2) != 0)
    return name;
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return status == 0 && text ? text.get() : name;
}

size_t KernelTable::Hash::operator()(const KernelShape &shape) const noexcept {
  uint64_t hash = mix(reinterpret_cast<uintptr_t>(shape.name), static_cast<uint32_t>(shape.device));
  hash = mix(hash, uint64_t{shape.grid[0]} << 32 | shape.grid[1]);
  hash = mix(hash, uint64_t{shape.grid[2]} << 32 | shape.block[0]);
  hash = mix(hash, uint64_t{shape.block[1]} << 32 | shape.block[2]);
  return mix(hash, uint64_t{shape.shared_bytes} << 32 | shape.registers);
}

bool KernelTable::SameShape::operator()(const KernelShape &left,
                                        const KernelShape &right) const noexcept {
  return left.name == right.name && left.device == right.device &&
         std::equal(std::begin(left.grid), std::end(left.grid), right.grid) &&
         std::equal(std::begin(left.block), std::end(left.block), right.block) &&
         left.shared_bytes == right.shared_bytes && left.registers == right.registers &&
         left.local_bytes == right.local_bytes;
}

const KnownKernel &KernelTable::find(const KernelShape &shape) {
  const char *name = shape.name ? shape.name : "<unnamed kernel>";
  const KnownKernel *&recent = recent_[Hash{}(shape) >> 32 & (kRecent - 1)];
  bool is_recent = recent && SameShape{}(recent->shape, shape) && recent->raw_name == name;
  if (is_recent)
    return *recent;
  Owned &entry = kernels_[shape];
  // The name of an unloaded module may have made room for another at the same address.
  if (entry && entry->raw_name != name)
    replaced_.push_back(std::move(entry));
  if (!entry)
    entry = known_kernel(shape, name, next_identity_++);
  recent = entry.get();
  return *entry;
}

void KernelTable::trim() {
  if (kernels_.size() < kMaxKernels && replaced_.empty())
    return;
  recent_.fill(nullptr);
  replaced_.clear();
  if (kernels_.size() >= kMaxKernels)
    kernels_.clear();
}

KernelCodes &KernelCodes::instance() {
  static KernelCodes *codes = new KernelCodes; // outlives threads of the target
  return *codes;
}

void KernelCodes::set(const void *function, uint64_t hash, std::string_view config) {
  uint16_t number = intern_code(hash, config);
  std::lock_guard lock(mutex_);
  if (number == 0)
    functions_.erase(function);
  else
    functions_[function] = number;
  generation_.fetch_add(1, std::memory_order_release);
}

uint16_t KernelCodes::find(const void *function) noexcept {
  uint32_t generation = generation_.load(std::memory_order_acquire);
  LaunchThread *thread = generation == 0 ? nullptr : this_launch_thread();
  if (!thread)
    return 0;
  auto hash = reinterpret_cast<uintptr_t>(function) * 0x9E3779B97F4A7C15ull;
  LaunchThread::Code &known = thread->codes[(hash >> 40) % thread->codes.size()];
  if (known.function == function && known.generation == generation)
    return known.number;
  std::lock_guard lock(mutex_);
  auto found = functions_.find(function);
  known = {function, generation, found == functions_.end() ? uint16_t{0} : found->second};
  return known.number;
}

void KernelCodes::set_name(std::string_view kernel, uint64_t hash) {
  std::lock_guard lock(mutex_);
  auto [found, is_new] = names_.try_emplace(std::string(kernel), hash);
  if (!is_new && found->second != hash)
    found->second = 0;
}

uint64_t KernelCodes::find_name(std::string_view kernel) const {
  std::lock_guard lock(mutex_);
  auto found = names_.find(std::string(kernel));
  return found == names_.end() ? 0 : found->second;
}

} // namespace proton
