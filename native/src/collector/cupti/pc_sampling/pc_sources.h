// Callbacks that both a sampler and another source need: the sampler takes them and passes them on.
#pragma once

#include <cstdint>
#include <vector>

#include "collector/cupti/callbacks/callback_table.h"
#include "collector/cupti/pc_sampling/pc_sampler.h"

namespace proton {

/// How contexts and modules are created and destroyed.
class PcResourceSource : public CallbackSource {
public:
  PcResourceSource(PcSampler &sampler, CallbackSource &contexts, CallbackSource &modules)
      : sampler_(sampler), contexts_(contexts), modules_(modules) {}
  int domain() const override { return cupti::kDomainResource; }
  std::vector<uint32_t> callbacks() const override;
  void handle(uint32_t cbid, const void *data) noexcept override;

private:
  PcSampler &sampler_;
  CallbackSource &contexts_; ///< asked for their ends
  CallbackSource &modules_;  ///< asked for their beginnings
};

/// Driver calls that make and end contexts and modules: CUPTI takes part in them, so they are held
/// back as launches are.
class PcCallSource : public CallbackSource {
public:
  int domain() const override { return cupti::kDomainDriver; }
  std::vector<uint32_t> callbacks() const override;
  bool may_lack_some() const override { return true; }
  void handle(uint32_t cbid, const void *data) noexcept override;
};

/// Driver calls that launch kernels, or a graph, in mode launch.
class PcLaunchSource : public CallbackSource {
public:
  PcLaunchSource(PcSampler &sampler, CallbackSource &kernels, CallbackSource &graphs)
      : sampler_(sampler), kernels_(kernels), graphs_(graphs) {}
  int domain() const override { return cupti::kDomainDriver; }
  std::vector<uint32_t> callbacks() const override;
  bool may_lack_some() const override { return true; }
  void handle(uint32_t cbid, const void *data) noexcept override;

private:
  PcSampler &sampler_;
  CallbackSource &kernels_;
  CallbackSource &graphs_;
};

} // namespace proton
