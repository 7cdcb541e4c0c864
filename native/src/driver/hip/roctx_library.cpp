#include "driver/hip/roctx_library.h"

namespace proton {

RoctxLibrary RoctxLibrary::open(const std::vector<LibraryCandidate> &candidates) {
  RoctxLibrary roctx;
  roctx.library_ = SharedLibrary::open(
      "libroctx64", candidates,
      "install roctracer of ROCm, or name a libroctx64 by PROTON_BENCH_ROCTX_LIB");
  roctx.library_.resolve("roctxRegisterTracerCallback", roctx.register_callback_);
  return roctx;
}

bool RoctxLibrary::set_callback(roctx::TracerCallback callback) const noexcept {
  if (!register_callback_)
    return false;
  register_callback_(callback);
  return true;
}

} // namespace proton
