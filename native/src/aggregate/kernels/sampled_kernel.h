// Samples of a kernel as nodes and metrics of a call-path tree.
#pragma once

#include <cstdint>
#include <vector>

#include "calltree/call_path_tree.h"
#include "record/pc_sample_record.h"

namespace proton {

/// Where samples of a kernel may go.
struct SampledLeaf {
  CallPathTree *tree = nullptr; ///< null: nowhere
  NodeIndex node = 0;
  int64_t time_ns = 0; ///< their share
};

/// Adds the samples: to a node per line below a leaf, and to the leaf itself where no line is
/// known. With several leaves they are split by time; the parts add up to what was counted.
void add_samples(const PcSampleRecord &record, const std::vector<SampledLeaf> &leaves);

} // namespace proton
