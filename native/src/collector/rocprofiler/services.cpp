#include "collector/rocprofiler/services.h"

#include <span>
#include <vector>

#include "collector/rocprofiler/record_stream.h"
#include "driver/hip/roctx_library.h"
#include "support/error.h"

namespace proton {
namespace {

constexpr size_t kWatermarkParts = 8; // a buffer is handed over with one of these still free
constexpr int kMarkerOperations[] = {static_cast<int>(roctx::kRangePush),
                                     static_cast<int>(roctx::kRangePop)};
constexpr int kRequests[] = {rocprofiler::kRequestKernelDispatch, rocprofiler::kRequestMemoryCopy};
constexpr const char *kTooLate =
    "run the program by `proton run -b rocprofiler PROGRAM`, or start the session before the first "
    "use of the GPU";

/// The one that registers: the library's callbacks have no argument of ours.
RocprofilerServices *g_registering = nullptr;

} // namespace

rocprofiler::ConfigureResult *
RocprofilerServices::on_configure(uint32_t, const char *, uint32_t,
                                  rocprofiler::ClientId *client) noexcept {
  static rocprofiler::ConfigureResult result;
  if (client)
    client->name = "proton_bench";
  result.initialize = on_initialize;
  result.tool = g_registering;
  return g_registering ? &result : nullptr;
}

int RocprofilerServices::on_initialize(rocprofiler::ClientFinalize, void *self) noexcept {
  auto &services = *static_cast<RocprofilerServices *>(self);
  try {
    services.initialize();
    services.is_initialized_ = true;
    return 0;
  } catch (const std::exception &error) {
    services.error_ = error.what();
    return -1;
  }
}

void RocprofilerServices::configure(const RocprofilerLibrary &library,
                                    const RocprofilerListener &listener, size_t buffer_bytes,
                                    bool copies) {
  if (is_configured_ && copies && !has_copies_)
    throw Error(ErrorCode::kUnavailable,
                "copies=on comes too late: rocprofiler-sdk is configured once per process, "
                "and the first session of this one asked for no copies; ask there");
  if (is_configured_)
    return;
  if (!error_.empty())
    throw Error(ErrorCode::kUnavailable, error_ + " (rocprofiler-sdk is asked once per process)");
  library_ = &library;
  listener_ = listener;
  buffer_bytes_ = buffer_bytes;
  has_copies_ = copies;
  g_registering = this;
  rocprofiler::Status status = library.functions().force_configure(on_configure);
  if (!error_.empty())
    throw Error(ErrorCode::kUnavailable, error_);
  library.check(status, "rocprofiler_force_configure");
  if (!is_initialized_) {
    error_ = "rocprofiler-sdk (" + library.path() +
             ") did not let the profiler register, because HIP or another tool came first; " +
             kTooLate;
    throw Error(ErrorCode::kUnavailable, error_);
  }
  is_configured_ = true;
}

void RocprofilerServices::make_buffer() {
  const RocprofilerFunctions &sdk = library_->functions();
  rocprofiler::Handle thread;
  library_->check(
      sdk.create_buffer(work_, buffer_bytes_, buffer_bytes_ - buffer_bytes_ / kWatermarkParts,
                        rocprofiler::kPolicyLossless, listener_.records, listener_.user, &buffer_),
      "rocprofiler_create_buffer");
  library_->check(sdk.create_callback_thread(&thread), "rocprofiler_create_callback_thread");
  library_->check(sdk.assign_callback_thread(buffer_, thread),
                  "rocprofiler_assign_callback_thread");
}

void RocprofilerServices::initialize() {
  const RocprofilerFunctions &sdk = library_->functions();
  auto create = [&](rocprofiler::Handle &context) {
    library_->check(sdk.create_context(&context), "rocprofiler_create_context");
  };
  create(code_);
  library_->check(sdk.configure_callback_tracing(code_, rocprofiler::kCallbackCodeObject, nullptr,
                                                 0, listener_.code_object, listener_.user),
                  "rocprofiler_configure_callback_tracing_service");
  create(work_);
  make_buffer();
  configure_work();
  library_->check(sdk.start_context(code_), "rocprofiler_start_context");
}

void RocprofilerServices::configure_work() {
  const RocprofilerFunctions &sdk = library_->functions();
  auto call_back = [&](int kind, std::span<const int> operations,
                       rocprofiler::TracingCallback callback) {
    library_->check(sdk.configure_callback_tracing(work_, kind, operations.data(),
                                                   operations.size(), callback, listener_.user),
                    "rocprofiler_configure_callback_tracing_service");
  };
  auto record = [&](int kind) {
    library_->check(sdk.configure_buffer_tracing(work_, kind, nullptr, 0, buffer_),
                    "rocprofiler_configure_buffer_tracing_service");
  };
  const std::vector<int> calls = traced_operations(has_copies_);
  call_back(rocprofiler::kCallbackHipRuntimeApi, calls, listener_.hip);
  call_back(rocprofiler::kCallbackMarkerCoreApi, kMarkerOperations, listener_.marker);
  record(rocprofiler::kBufferKernelDispatch);
  if (has_copies_)
    record(rocprofiler::kBufferMemoryCopy);
  library_->check(sdk.configure_correlation_request(work_, kRequests, has_copies_ ? 2 : 1,
                                                    listener_.tag, listener_.user),
                  "rocprofiler_configure_external_correlation_id_request_service");
}

void RocprofilerServices::start() {
  if (is_started_)
    return;
  library_->check(library_->functions().start_context(work_), "rocprofiler_start_context");
  is_started_ = true;
}

bool RocprofilerServices::flush() const noexcept {
  rocprofiler::Status status = library_->functions().flush_buffer(buffer_);
  return status == rocprofiler::kSuccess || status == rocprofiler::kErrorBufferBusy;
}

} // namespace proton
