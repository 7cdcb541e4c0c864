#include "collector/instrumentation/runtime/launch_places.h"

#include "support/error.h"

namespace proton {

uint64_t ContextPlaces::capture_of(void *stream) {
  const CudaWorkFunctions &functions = device_.work().functions();
  int status = cuda::kCaptureNone;
  if (!functions.stream_is_capturing ||
      functions.stream_is_capturing(stream, &status) != cuda::kSuccess ||
      status != cuda::kCaptureActive)
    return 0;
  unsigned long long id = 0;
  if (!functions.stream_get_capture_info ||
      functions.stream_get_capture_info(stream, &status, &id, nullptr, nullptr, nullptr) !=
          cuda::kSuccess ||
      id == 0)
    throw Error(ErrorCode::kUnavailable,
                "the driver does not tell which graph stream " +
                    std::to_string(reinterpret_cast<uintptr_t>(stream)) +
                    " is captured into, so scopes inside kernels cannot be recorded there; use a "
                    "driver of CUDA 11.3 or later");
  for (const OpenCapture &capture : captures_)
    if (capture.stream == stream && capture.id == id)
      return id;
  captures_.push_back({stream, id});
  return id;
}

ScratchPool &ContextPlaces::pool(void *stream, uint64_t capture_id) {
  const CudaWorkFunctions &functions = device_.work().functions();
  unsigned long long id = 0; // handles of streams are used again
  // Asking for the id of a captured stream would end the capture.
  bool asks = capture_id == 0 && functions.stream_get_id;
  if (asks && functions.stream_get_id(stream, &id) != cuda::kSuccess)
    id = 0;
  auto &pool = pools_[{stream, id, capture_id}];
  if (!pool)
    pool = std::make_unique<ScratchPool>(device_, capture_id != 0);
  return *pool;
}

bool ContextPlaces::is_capturing() {
  const CudaWorkFunctions &functions = device_.work().functions();
  std::erase_if(captures_, [&](const OpenCapture &capture) {
    int status = cuda::kCaptureNone;
    unsigned long long id = 0;
    cuda::Result result =
        functions.stream_get_capture_info(capture.stream, &status, &id, nullptr, nullptr, nullptr);
    return result != cuda::kSuccess || status != cuda::kCaptureActive || id != capture.id;
  });
  return !captures_.empty();
}

void ContextPlaces::free_outgrown() noexcept {
  for (auto &[key, pool] : pools_)
    pool->free_outgrown();
}

void ContextPlaces::free_all() noexcept {
  for (auto &[key, pool] : pools_)
    pool->free_all();
  totals_.free_all();
}

size_t ContextPlaces::bytes() const {
  size_t all = totals_.bytes();
  for (const auto &[key, pool] : pools_)
    all += pool->bytes();
  return all;
}

size_t ContextPlaces::graph_bytes() const {
  size_t all = totals_.graph_bytes();
  for (const auto &[key, pool] : pools_)
    all += pool->is_of_graph() ? pool->bytes() : 0;
  return all;
}

ContextPlaces &LaunchPlaces::current() {
  const CudaWorkFunctions &functions = work_.functions();
  void *context = nullptr;
  cuda::Result result = functions.ctx_get_current(&context);
  bool can_make = functions.device_primary_ctx_retain && functions.ctx_set_current;
  if (result == cuda::kSuccess && !context && can_make) {
    // A new thread. Triton takes the same step, but only after it asked for the buffer.
    result = functions.device_primary_ctx_retain(&context, 0);
    if (result == cuda::kSuccess)
      result = functions.ctx_set_current(context);
  }
  if (result != cuda::kSuccess || !context)
    throw Error(ErrorCode::kUnavailable,
                "a kernel was launched without a current context: " + work_.describe(result));
  auto &places = contexts_[context];
  if (!places)
    places = std::make_unique<ContextPlaces>(work_, context);
  return *places;
}

std::vector<ContextPlaces *> LaunchPlaces::list() const {
  std::vector<ContextPlaces *> all;
  for (const auto &[context, places] : contexts_)
    if (places)
      all.push_back(places.get());
  return all;
}

} // namespace proton
