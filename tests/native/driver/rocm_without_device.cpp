// What the drivers' classes say on the machine's own ROCm runtime; run by
// test_rocm_without_device.py, which reads the lines. Arguments: libamdhip64 and libhsa-runtime64.
#include <cstdio>
#include <string>

#include "driver/hip/hip_driver.h"
#include "driver/hip/hsa_runtime.h"
#include "support/error.h"

using namespace proton;

template <typename Work> static void tell(const char *what, Work work) {
  std::string answer;
  try {
    answer = work();
  } catch (const Error &error) {
    const bool is_unavailable = error.code() == ErrorCode::kUnavailable;
    answer = (is_unavailable ? "unavailable: " : "error: ") + std::string(error.what());
  }
  std::printf("%s=%s\n", what, answer.c_str());
}

int main(int count, char **arguments) {
  if (count != 3)
    return 2;
  const HipDriver hip = HipDriver::open({{arguments[1], "test"}});
  const HsaRuntime hsa = HsaRuntime::open({{arguments[2], "test"}});
  tell("path", [&] { return hip.path(); });
  tell("version", [&] { return hip.version(); });
  tell("devices", [&] { return std::to_string(hip.device_count()); });
  tell("gpus", [&] { return std::to_string(hsa.gpus().size()); });
  tell("name", [&] { return hip.device(0).name + hip.device(0).arch + hip.device(0).pci; });
  tell("wait", [&] { return hip.describe(hip.synchronize()); });
  tell("kernel", [&] { return std::string(hip.kernel_name(nullptr) ? "some" : "none"); });
  return 0;
}
