// Which compiled code a kernel is: by its function if a compiler reported it, else by its name.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace proton {

class KernelCodes {
public:
  static KernelCodes &instance();

  /// Notes the hash of a loaded function, and what an autotuner chose for it. Later notes replace
  /// older ones, because functions are unloaded and their addresses used again. [any thread] locks
  void set(const void *function, uint64_t hash, std::string_view config = {});
  /// Number of the function's code (record/code_table.h); 0 if it is not known. Locks at the
  /// calling thread's first launch of the function only. [launching thread, noexcept]
  uint16_t find(const void *function) noexcept;
  /// Notes the hash of a module for one of its kernels; a second, different hash makes it unknown.
  /// [any thread]
  void set_name(std::string_view kernel, uint64_t hash);
  /// Hash by name; 0 if it is not known. [any thread] locks
  uint64_t find_name(std::string_view kernel) const;

private:
  mutable std::mutex mutex_;
  std::unordered_map<const void *, uint16_t> functions_;
  std::unordered_map<std::string, uint64_t> names_;
  std::atomic<uint32_t> generation_{0}; ///< of what threads remember; 0: nothing was ever set
};

} // namespace proton
