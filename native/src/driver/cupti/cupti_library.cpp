#include "driver/cupti/cupti_library.h"

#include "support/error.h"

namespace proton {
namespace {

constexpr const char *kCuptiAdvice =
    "install the nvidia-cuda-cupti wheel that fits the driver, or name a libcupti of CUDA 12.4 or "
    "later by PROTON_BENCH_CUPTI_LIB";

/// What a result means to a user, and what to do about it; null if there is no advice.
const char *cupti_advice(cupti::Result result) {
  switch (result) {
  case cupti::kErrorMultipleSubscribers:
    return "another profiler of this process (torch.profiler, nsys, ncu, upstream's proton) uses "
           "CUPTI: end that one first";
  case cupti::kErrorInsufficientPrivileges:
    return "the driver keeps profiling to administrators: run with CAP_SYS_ADMIN, or load the "
           "driver with NVreg_RestrictProfilingToAdminUsers=0";
  case cupti::kErrorNotInitialized:
    return "the CUDA driver did not start: check nvidia-smi, and CUDA_VISIBLE_DEVICES";
  case cupti::kErrorVirtualizedDevice:
  case cupti::kErrorVirtualizedPrivileges:
    return "this virtual GPU does not allow profiling: ask for a profile of the hypervisor that "
           "does";
  case cupti::kErrorConfidentialComputing:
    return "GPUs in confidential computing mode cannot be profiled";
  case cupti::kErrorMigDevice:
    return "this MIG slice cannot be profiled: use a whole GPU or a slice of a full compute "
           "instance";
  case cupti::kErrorWslDevice:
    return "this GPU cannot be profiled under WSL";
  case cupti::kErrorInvalidChipName:
    return "this libcupti does not know this GPU: name a newer one by PROTON_BENCH_CUPTI_LIB";
  case cupti::kErrorHardwareBusy:
    return "another process samples this GPU or has its counters (proton -m pcsampling or "
           "counters, "
           "ncu, nsys with GPU metrics, dcgm), and it serves one at a time: end that one first";
  case cupti::kErrorNotSupported:
  case cupti::kErrorNotCompatible:
    return "another active tool of this process is incompatible with it: end that tool first";
  default:
    return nullptr;
  }
}

} // namespace

std::string cupti_release(uint32_t version) {
  if (version >= 100000)
    return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100);
  if (version >= 18 && version <= 30) // 18 was CUDA 12.0
    return "12." + std::to_string(version - 18);
  return std::to_string(version);
}

CuptiLibrary CuptiLibrary::open(const std::vector<LibraryCandidate> &candidates) {
  CuptiLibrary cupti;
  cupti.library_ = SharedLibrary::open("libcupti", candidates, kCuptiAdvice);
  const SharedLibrary &library = cupti.library_;
  cupti.functions_ = CuptiFunctions(library);
  cupti.functions_.check(library, kCuptiAdvice);
  cupti.check(cupti.functions_.get_version(&cupti.version_), "cuptiGetVersion");
  if (cupti.version_ < cupti::kVersion12_4)
    throw Error(ErrorCode::kUnavailable,
                library.path() + " is of CUDA " + cupti_release(cupti.version_) +
                    ", and 12.4 is the oldest that is supported; " + kCuptiAdvice);
  return cupti;
}

std::string CuptiLibrary::describe(cupti::Result result) const {
  const char *text = nullptr; // stays null in libraries that find no driver
  bool is_known = functions_.get_result_string &&
                  functions_.get_result_string(result, &text) == cupti::kSuccess && text;
  return (is_known ? std::string(text) : "error") + " (" + std::to_string(result) + ")";
}

void CuptiLibrary::check(cupti::Result result, const char *function) const {
  if (result == cupti::kSuccess)
    return;
  std::string message = std::string(function) + " of " + path() + " failed: " + describe(result);
  const char *advice = cupti_advice(result);
  if (result == cupti::kErrorMultipleSubscribers && functions_.subscribe_v2) {
    std::string holder;
    void *subscriber = nullptr;
    auto ignore = [](void *, int, uint32_t, const void *) {};
    if (subscribe_v2(subscriber, ignore, nullptr, false, holder) == cupti::kSuccess)
      functions_.unsubscribe(subscriber); // it has just left
    else if (!holder.empty())
      message += ", held by '" + holder + "'";
  }
  message += advice ? std::string("; ") + advice
                    : "; `proton doctor` examines driver and libraries, another libcupti may be "
                      "named by PROTON_BENCH_CUPTI_LIB";
  throw Error(ErrorCode::kUnavailable, message);
}

bool CuptiLibrary::has_v2() const {
  return version_ >= cupti::kVersion13_3 && functions_.subscribe_v2 &&
         functions_.activity_register_callbacks_v2 && functions_.activity_enable_v2 &&
         functions_.activity_disable_v2 && functions_.activity_get_next_record_v2 &&
         functions_.activity_get_num_dropped_records_v2 && functions_.get_timestamp_v2;
}

cupti::Result CuptiLibrary::subscribe_v2(void *&subscriber, cupti::CallbackFunction callback,
                                         void *user, bool allows_several,
                                         std::string &other) const {
  char name[64] = {};
  cupti::SubscriberParameters parameters;
  parameters.name = "proton_bench";
  parameters.old_name = name;
  parameters.old_name_bytes = sizeof name;
  if (allows_several) {
    parameters.struct_bytes = sizeof parameters;
    parameters.allows_several = 1;
  }
  cupti::Result result = functions_.subscribe_v2(&subscriber, callback, user, &parameters);
  name[sizeof name - 1] = '\0';
  other = name;
  if (other.ends_with("<not provided>")) // what CUPTI calls a client of V1, such as torch.profiler
    other.clear();
  return result;
}

} // namespace proton
