// The collector of AMD GPUs through roctracer, which its vendor has deprecated.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "collector/collector.h"
#include "collector/hip/call_reader.h"
#include "collector/hip/hip_devices.h"
#include "collector/hip/hip_options.h"
#include "driver/hip/hsa_runtime.h"
#include "record/record_sink.h"

namespace proton {

class RoctracerCollector : public Collector {
public:
  RoctracerCollector(RecordSink &sink, HipOptions options)
      : sink_(sink), options_(std::move(options)) {}
  ~RoctracerCollector() override;
  RoctracerCollector(const RoctracerCollector &) = delete;
  RoctracerCollector &operator=(const RoctracerCollector &) = delete;

  void start() override;
  void flush() override;
  void stop() override;
  /// Known after the first start.
  HipFacts facts() const;

private:
  RecordSink &sink_;
  HipOptions options_;
  bool is_running_ = false;
};

// GPUs by the driver's nodes, which roctracer's records carry, and the ordinals of HIP.

class GpuNodes {
public:
  void set_candidates(std::vector<LibraryCandidate> candidates) {
    candidates_ = std::move(candidates);
  }
  /// HIP ordinal of a node; -1: unknown, or hidden from HIP. ROCr and HIP are asked at the first
  /// call, when work of a GPU has ended. [completing thread, one at a time]
  int ordinal(int node, const HipDevices &devices);

private:
  void map(const HipDevices &devices);

  std::vector<LibraryCandidate> candidates_;
  std::map<int, int> ordinals_;
  bool is_mapped_ = false;
};

// HIP calls as roctracer's callbacks carry them.

/// Calls to listen to, as of rocprofiler-sdk (collector/rocprofiler/rocprofiler_collector.h).
std::vector<int> roctracer_operations(bool copies);
/// Whether the call changes what is known of graphs.
bool is_graph_operation(int operation) noexcept;
/// `data` is that of a callback of kDomainHipApi.
HipApiCall read_roctracer_call(uint32_t operation, const void *data) noexcept;

} // namespace proton
