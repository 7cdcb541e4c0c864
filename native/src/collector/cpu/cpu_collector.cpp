#include "collector/cpu/cpu_collector.h"

#include "collector/cpu/op_stack.h"
#include "collector/cpu/torch_observer.h"

namespace proton {

void CpuCollector::start() {
  set_op_depth(max_depth_);
  set_ops_enabled(true);
}

void CpuCollector::stop() {
  set_ops_enabled(false);
  TorchObserver::instance().remove();
}

} // namespace proton
