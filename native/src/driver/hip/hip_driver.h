// libamdhip64 opened at run time: the few calls a profiler of AMD GPUs makes itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/hip/hip_abi.h"
#include "driver/shared_library.h"

namespace proton::roctx {
enum Operation : uint32_t { // roctx_api_id_t and rocprofiler_marker_core_api_id_t
  kMark = 0,
  kRangePush = 1,
  kRangePop = 2,
  kRangeStart = 3,
  kRangeStop = 4,
};
struct CallbackData {
  const char *message;
  uint64_t range_id; ///< of kRangeStart and kRangeStop
};
extern "C" {
using TracerCallback = int (*)(uint32_t domain, uint32_t operation, void *data);
}
namespace function {
using Mark = void (*)(const char *message);
using RegisterTracerCallback = void (*)(TracerCallback callback);
} // namespace function
} // namespace proton::roctx

namespace proton {

/// What HIP says of a device; 0 and "" where it does not answer.
struct HipDeviceFacts {
  std::string name;
  std::string arch; ///< "gfx942", without features
  std::string uuid; ///< "GPU-" and the 16 hexadecimal digits that ROCR_VISIBLE_DEVICES takes
  std::string pci;  ///< "0000:c1:00.0", in lower case
  int64_t compute_units = 0;
  int64_t clock_rate_khz = 0;
  int64_t memory_clock_rate_khz = 0;
  int64_t bus_width_bits = 0;
  int64_t wave_size = 0;
};

/// Entry points by their names without "hip". Those below `optional` may be null.
struct HipFunctions : SymbolTable {
  using SymbolTable::SymbolTable;

  hip::function::GetDeviceCount get_device_count = need("hipGetDeviceCount");
  hip::function::GetDevice get_device = need("hipGetDevice");
  hip::function::SetDevice set_device = need("hipSetDevice");
  hip::function::DeviceSynchronize device_synchronize = need("hipDeviceSynchronize");
  hip::function::DeviceGetAttribute device_get_attribute = need("hipDeviceGetAttribute");
  hip::function::RuntimeGetVersion runtime_get_version = find("hipRuntimeGetVersion");
  hip::function::GetErrorName get_error_name = find("hipGetErrorName");
  hip::function::DeviceGetName device_get_name = find("hipDeviceGetName");
  hip::function::DeviceGetPciBusId device_get_pci_bus_id = find("hipDeviceGetPCIBusId");
  hip::function::GetDeviceProperties get_device_properties =
      find("hipGetDevicePropertiesR0600"); ///< ...R0600, from ROCm 6
  hip::function::StreamIsCapturing stream_is_capturing = find("hipStreamIsCapturing");
  hip::function::StreamGetCaptureInfo stream_get_capture_info = find("hipStreamGetCaptureInfo_v2");
  hip::function::ThreadExchangeStreamCaptureMode exchange_capture_mode =
      find("hipThreadExchangeStreamCaptureMode");
  hip::function::GraphGetNodes graph_get_nodes = find("hipGraphGetNodes");
  hip::function::KernelNameRef kernel_name_ref = find("hipKernelNameRef");
  hip::function::KernelNameRefByPtr kernel_name_ref_by_ptr = find("hipKernelNameRefByPtr");
};

class HipDriver {
public:
  /// Throws Error(kUnavailable) where none of the candidates loads or it lacks an entry point.
  static HipDriver open(const std::vector<LibraryCandidate> &candidates);

  const HipFunctions &functions() const { return functions_; }
  const std::string &path() const { return library_.path(); }
  const std::string &origin() const { return library_.origin(); }
  /// E.g. "7.1.25424"; empty when the library does not answer.
  std::string version() const;
  /// "hipErrorNoDevice (100)".
  std::string describe(hip::Result result) const;
  /// Devices that this process may use; throws Error(kUnavailable) when the library finds none.
  int device_count() const;
  HipDeviceFacts device(int ordinal) const;
  /// Waits for all work of every device that is in use; the calling thread's device stays as it
  /// was. Returns the first failure.
  hip::Result synchronize() const noexcept;
  /// Name of a kernel, which lives as long as its module; null where it is not known.
  const char *kernel_name(void *function) const noexcept;
  /// Same for a kernel that is given by the host's function.
  const char *kernel_name(const void *host_function, void *stream) const noexcept;

private:
  SharedLibrary library_;
  HipFunctions functions_;
};

// libroctx64 opened at run time: the source of ranges where no profiler library reports them.

class RoctxLibrary {
public:
  /// Throws Error(kUnavailable) where none of the candidates loads.
  static RoctxLibrary open(const std::vector<LibraryCandidate> &candidates);

  const std::string &path() const { return library_.path(); }
  const std::string &origin() const { return library_.origin(); }
  /// Has the callback called before every operation; null removes it. The library keeps one
  /// callback only. Returns false on failure.
  bool set_callback(roctx::TracerCallback callback) const noexcept;

private:
  SharedLibrary library_;
  roctx::function::RegisterTracerCallback register_callback_ = nullptr;
};

} // namespace proton
