// The records of a launch, for a program that wants to read them itself.
#include "collector/instrumentation/runtime/runtime.h"

namespace proton {

std::optional<std::vector<std::byte>> InstrumentationRuntime::read_open(void *stream) {
  OpenLaunches &open = OpenLaunches::of_thread();
  if (open.size() == 0 || open.newest().owner != serial_ || open.newest().stream != stream ||
      open.newest().capture_id != 0)
    return std::nullopt;
  // The buffer belongs to this thread's launch until that ends.
  const OpenLaunch &launch = open.newest();
  const CudaWorkFunctions &functions = work_->functions();
  std::vector<std::byte> bytes(launch.bytes);
  work_->check(
      functions.memcpy_dtoh_async(bytes.data(), launch.buffer->address, launch.bytes, stream),
      "cuMemcpyDtoHAsync", "reading what a launch recorded");
  work_->check(functions.stream_synchronize(stream), "cuStreamSynchronize",
               "reading what a launch recorded");
  return bytes;
}

} // namespace proton
