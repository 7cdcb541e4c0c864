// Something that happens before and behind each driver call that launches.
#pragma once

#include <cstdint>
#include <vector>

#include "collector/cupti/callbacks/callback_table.h"

namespace proton {

/// [launching thread, inside of the call, noexcept]
class LaunchBracket {
public:
  virtual ~LaunchBracket() = default;
  virtual void launch_begins(void *context) noexcept = 0;
  virtual void launch_ended(void *context, bool is_graph) noexcept = 0;
};

/// Driver calls that launch kernels, or a graph: the bracket comes around the source of launches.
class BracketedLaunchSource : public CallbackSource {
public:
  BracketedLaunchSource(LaunchBracket &bracket, CallbackSource &kernels, CallbackSource &graphs)
      : bracket_(bracket), kernels_(kernels), graphs_(graphs) {}
  int domain() const override { return cupti::kDomainDriver; }
  std::vector<uint32_t> callbacks() const override;
  bool may_lack_some() const override { return true; }
  void handle(uint32_t cbid, const void *data) noexcept override;

private:
  LaunchBracket &bracket_;
  CallbackSource &kernels_;
  CallbackSource &graphs_;
};

} // namespace proton
