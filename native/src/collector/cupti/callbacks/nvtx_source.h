// NVTX ranges of the target as scopes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

#include "collector/cupti/callbacks/callbacks.h"
#include "driver/cupti/cupti_abi.h"

namespace proton {

// Texts that the target registered with NVTX, by the handles it got for them.

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

/// Pushed and popped ranges of every domain, with every kind of text. The target must be started
/// with NVTX_INJECTION64_PATH naming libcupti: see docs/explanation/graphs.md.
class NvtxSource : public CallbackListener {
public:
  static constexpr uint32_t kCalls[] = {cupti::kNvtxRangePushA,
                                        cupti::kNvtxRangePushW,
                                        cupti::kNvtxRangePushEx,
                                        cupti::kNvtxRangePop,
                                        cupti::kNvtxDomainRangePushEx,
                                        cupti::kNvtxDomainRangePop,
                                        cupti::kNvtxDomainRegisterStringA,
                                        cupti::kNvtxDomainRegisterStringW};

  void handle(int domain, uint32_t cbid, const void *data) noexcept override;

private:
  void dispatch(uint32_t cbid, const cupti::NvtxData &call);
  void push_of(uint32_t cbid, const void *parameters);
  void register_text(uint32_t cbid, const cupti::NvtxData &call);
  std::string message_of(const void *attributes) const;

  RegisteredTexts texts_;
};

} // namespace proton
