// The forms that the parameters of HIP calls have; several calls share one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace proton {

enum class HipCallForm : uint8_t {
  kNone,
  kLaunch,
  kCooperative,
  kModule,
  kExtModule,
  kLaunchEx,
  kDrvLaunchEx,
  kOtherLaunch, ///< several kernels, or one whose shape another call gave
  kGraphLaunch,
  kBeginCapture,
  kBeginCaptureToGraph,
  kEndCapture,
  kInstantiate,
  kExecUpdate,
  kExecDestroy,
  kDestroy,
  kClone,
  kAddChild,
  kAddKernel,
  kCopy,
  kCopyAsync, ///< with a stream
  kSetAsync,
};

inline bool is_copy(HipCallForm form) noexcept { return form >= HipCallForm::kCopy; }

/// Whether the call makes, changes or destroys a graph, or begins or ends its capture.
inline bool changes_graphs(HipCallForm form) noexcept {
  return form >= HipCallForm::kBeginCapture && form <= HipCallForm::kAddKernel;
}

/// A call that is listened to, by its library's number.
struct HipOperation {
  int number;
  HipCallForm form;
};

/// Number -> form, for calls that are listened to.
class HipOperationTable {
public:
  explicit HipOperationTable(std::span<const HipOperation> operations) : operations_(operations) {
    int most = 0;
    for (const HipOperation &each : operations)
      most = std::max(most, each.number);
    forms_.resize(static_cast<size_t>(most) + 1);
    for (const HipOperation &each : operations)
      forms_[static_cast<size_t>(each.number)] = each.form;
  }
  HipCallForm find(int number) const noexcept {
    auto place = static_cast<size_t>(number);
    return place < forms_.size() ? forms_[place] : HipCallForm::kNone;
  }
  /// Numbers to listen to.
  std::vector<int> numbers(bool copies) const {
    std::vector<int> chosen;
    for (const HipOperation &each : operations_)
      if (copies || !is_copy(each.form))
        chosen.push_back(each.number);
    return chosen;
  }

private:
  std::span<const HipOperation> operations_;
  std::vector<HipCallForm> forms_;
};

// A HIP call as both of AMD's libraries report it, whatever their structures look like.

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
