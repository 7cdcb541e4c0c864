#include "collector/gpu/work/kernel_codes.h"

#include "collector/gpu/launches/launch_thread.h"
#include "record/code_table.h"

namespace proton {

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
