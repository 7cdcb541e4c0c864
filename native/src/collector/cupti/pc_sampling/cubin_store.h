// Copies of the cubins that are loaded, for the lines of their instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace proton {

/// By the CRC that samples name. Modules with the same cubin share it; an unloaded one stays until
/// the samples from before were shown. Not synchronised.
class CubinStore {
public:
  using Cubin = std::shared_ptr<const std::vector<char>>;

  /// Notes that the context loaded it as this module. Past a limit the bytes are not kept, and its
  /// samples have no lines.
  void load(const void *context, uint32_t module, uint64_t crc, const char *image, size_t bytes);
  void unload(const void *context, uint32_t module);
  /// Unloads all modules of a context that ends.
  void unload_all(const void *context);
  /// Null if it is not kept.
  Cubin find(uint64_t crc) const;
  /// Forgets cubins that no module has any more.
  void forget_unloaded();

  size_t size() const { return cubins_.size(); }
  size_t bytes() const { return bytes_; }

private:
  static constexpr size_t kMostBytes = size_t{1} << 30;
  struct Entry {
    Cubin image;
    uint64_t modules = 0; ///< that have it
  };
  using Module = std::pair<const void *, uint32_t>;
  void release(uint64_t crc);

  std::map<uint64_t, Entry> cubins_;
  std::map<Module, uint64_t> modules_; ///< -> CRC
  size_t bytes_ = 0;
};

} // namespace proton
