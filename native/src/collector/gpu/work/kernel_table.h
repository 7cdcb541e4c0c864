// The kernels that records name: one entry per name, shape and device, with a lasting identity.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
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

} // namespace proton
