// Texts that the target registered with NVTX, by the handles it got for them.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <unordered_map>

namespace proton {

/// Handles stay valid for as long as the process. [any thread]
class RegisteredTexts {
public:
  /// Keeps a text, up to a limit.
  void add(const void *handle, std::string text);
  /// Empty for a handle that was made before the first session.
  std::string find(const void *handle) const;

private:
  static constexpr size_t kMost = size_t{1} << 16;
  mutable std::mutex mutex_;
  std::unordered_map<const void *, std::string> texts_;
};

} // namespace proton
