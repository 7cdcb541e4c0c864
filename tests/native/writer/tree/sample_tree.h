// Trees and devices that the writers' tests share.
#pragma once

#include <string>
#include <vector>

#include "calltree/call_path_tree.h"
#include "record/device.h"

namespace sample {

inline constexpr const char *kTime = "time (ns)";

inline std::vector<proton::Device> one_gpu() {
  proton::Device device;
  device.kind = "CUDA";
  device.arch = "90";
  device.num_sms = 132;
  device.clock_rate_khz = 1980000;
  device.memory_clock_rate_khz = 2619000;
  device.bus_width_bits = 6144;
  return {device};
}

inline proton::NodeIndex scope(proton::CallPathTree &tree, proton::NodeIndex parent,
                               const std::string &name) {
  return tree.child(parent, proton::Name(name), proton::FrameKind::kScope);
}

// A kernel leaf on device 0 in its own variant, with one run of `time_ns`.
inline proton::NodeIndex kernel(proton::CallPathTree &tree, proton::NodeIndex parent,
                                const std::string &name, uint64_t code_hash, int64_t time_ns) {
  proton::VariantRecord record;
  record.code_hash = code_hash;
  record.grid[0] = 4;
  record.signature = "*fp32,i32";
  proton::Name interned(name);
  int32_t variant = tree.variant(parent, interned, record);
  proton::NodeIndex node = tree.child(parent, interned, proton::FrameKind::kKernel, 0, variant);
  using proton::Aggregation;
  tree.metrics().add(node, kTime, Aggregation::kInclusive, time_ns);
  tree.metrics().add(node, "count", Aggregation::kInclusive, int64_t{1});
  return node;
}

inline proton::NodeIndex chain(proton::CallPathTree &tree, uint32_t levels) {
  proton::NodeIndex node = proton::kRootNode;
  for (uint32_t level = 0; level < levels; ++level)
    node = scope(tree, node, "level");
  return node;
}

} // namespace sample
