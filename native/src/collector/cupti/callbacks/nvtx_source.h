// NVTX ranges of the target as scopes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collector/cupti/callbacks/callback_table.h"
#include "collector/cupti/callbacks/registered_texts.h"
#include "driver/cupti/cupti_nvtx_calls.h"

namespace proton {

/// Pushed and popped ranges of every domain, with every kind of text. The target must be started
/// with NVTX_INJECTION64_PATH naming libcupti: see docs/explanation/graphs.md.
class NvtxSource : public CallbackSource {
public:
  int domain() const override { return cupti::kDomainNvtx; }
  std::vector<uint32_t> callbacks() const override;
  bool may_lack_some() const override { return true; }
  void handle(uint32_t cbid, const void *data) noexcept override;

private:
  void dispatch(uint32_t cbid, const cupti::NvtxData &call);
  void push_of(uint32_t cbid, const void *parameters);
  void register_text(uint32_t cbid, const cupti::NvtxData &call);
  std::string message_of(const void *attributes) const;

  RegisteredTexts texts_;
};

} // namespace proton
