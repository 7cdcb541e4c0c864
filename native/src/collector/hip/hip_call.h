// A HIP call as both of AMD's libraries report it, whatever their structures look like.
#pragma once

#include <cstdint>

namespace proton {

enum class HipCallKind : uint8_t {
  kOther,
  kKernel,
  kCopy,   ///< or a setting of memory
  kCopies, ///< a batch of them
  kGraphLaunch,
  kCaptureBegin, ///< into `graph`, or a new one where that is null
  kCaptureEnd,   ///< made a graph
  kGraphClone,   ///< made a graph of `graph`
  kGraphChild,   ///< a node of `graph` that runs `child`
  kGraphKernel,  ///< a kernel node of `graph`, without a capture
  kGraphDestroy,
  kExecutableMake, ///< made an executable graph of `graph`
  kExecutableUpdate,
  kExecutableDestroy,
};

struct HipApiCall {
  HipCallKind kind = HipCallKind::kOther;
  bool is_host_function = false; ///< `function` stands for the kernel on every device
  void *stream = nullptr;
  const void *function = nullptr; ///< null where the call does not say
  uint32_t work_items[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  void *graph = nullptr;
  void *child = nullptr;
  void *executable = nullptr;
  void *const *made = nullptr; ///< where the handle of what was made stands on exit
};

/// Whether the call launches work that may become a node of a graph instead.
inline bool is_work(HipCallKind kind) noexcept {
  return kind == HipCallKind::kKernel || kind == HipCallKind::kCopy || kind == HipCallKind::kCopies;
}

} // namespace proton
