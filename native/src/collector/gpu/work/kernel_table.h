// The kernels that records name: one entry per name, shape and device, with a lasting identity.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "record/record.h"

namespace proton {

/// A kernel as a record describes it.
struct KernelShape {
  const char *name = nullptr; ///< as the vendor's library gives it; the pointer is only a hint
  int32_t device = 0;
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t shared_bytes = 0;
  uint32_t registers = 0;
  int32_t local_bytes = -1; ///< of a thread; -1: unknown
};

struct KnownKernel {
  uint64_t identity = 0;
  bool is_own = false; ///< the profiler's
  KernelShape shape;
  std::string raw_name;
  std::string name;      ///< demangled
  VariantRecord variant; ///< its raw_name points here, or is null where both names are one
};

/// Not synchronised.
class KernelTable {
public:
  /// The entry of the shape, made if it is new. Its address stays until `trim`.
  const KnownKernel &find(const KernelShape &shape);
  /// Forgets replaced kernels, and starts over if there are too many; identities are not reused.
  void trim();
  size_t size() const { return kernels_.size(); }

private:
  struct Hash {
    size_t operator()(const KernelShape &shape) const noexcept;
  };
  struct SameShape { ///< all but the text of the name
    bool operator()(const KernelShape &left, const KernelShape &right) const noexcept;
  };
  static constexpr size_t kRecent = 256;

  using Owned = std::unique_ptr<KnownKernel>;
  std::unordered_map<KernelShape, Owned, Hash, SameShape> kernels_;
  std::vector<Owned> replaced_;
  std::array<const KnownKernel *, kRecent> recent_{};
  uint64_t next_identity_ = 1;
};

/// The C++ name behind a mangled one; other names stay as they are.
std::string demangle(const char *name);

// Which compiled code a kernel is: by its function if a compiler reported it, else by its name.

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
