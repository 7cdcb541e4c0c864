// The doubles of roctracer and rocprofiler-sdk behave like those libraries where profilers depend
// on it.
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "driver/hip/hip_driver.h"
#include "driver/rocprofiler/rocprofiler_abi.h"
#include "driver/rocprofiler/rocprofiler_hip_calls.h"
#include "driver/rocprofiler/rocprofiler_library.h"
#include "driver/roctracer/roctracer_hip_calls.h"
#include "driver/roctracer/roctracer_library.h"
#include "fake_amd/control.h"

using namespace proton;

namespace {

/// The reports to a profiler on either library.
struct Seen {
  std::mutex mutex;
  std::vector<std::string> calls; ///< ">163:5" and "<163:5": call and correlation
  std::vector<std::string> names; ///< of kernels of records, in the order of delivery
  std::vector<uint64_t> correlations;
  std::vector<std::string> ranges;
  std::vector<uint64_t> externals;
  uint64_t dropped = 0;
  std::thread::id thread;

  void add(std::vector<std::string> &to, std::string text) {
    std::lock_guard lock(mutex);
    to.push_back(std::move(text));
  }
};

std::string call_text(bool is_enter, uint64_t call, uint64_t correlation) {
  return (is_enter ? ">" : "<") + std::to_string(call) + ":" + std::to_string(correlation);
}

Seen tracer_seen;

const RoctracerLibrary &tracer() {
  static const RoctracerLibrary library =
      RoctracerLibrary::open({{std::getenv("PROTON_BENCH_ROCTRACER_LIB"), "test"}});
  return library;
}

void on_api(uint32_t domain, uint32_t operation, const void *data, void *user) {
  Seen &seen = *static_cast<Seen *>(user);
  if (domain == roctracer::kDomainRoctx) {
    const auto &range = *static_cast<const roctx::CallbackData *>(data);
    seen.add(seen.ranges, operation == roctx::kRangePush ? range.message : "-");
    return;
  }
  const auto &call = *static_cast<const roctracer::HipApiData *>(data);
  seen.add(seen.calls, call_text(call.phase == roctracer::kEnter, operation, call.correlation));
}

void on_records(const char *begin, const char *end, void *user) {
  Seen &seen = *static_cast<Seen *>(user);
  std::lock_guard lock(seen.mutex);
  seen.thread = std::this_thread::get_id();
  auto record = reinterpret_cast<const roctracer::Record *>(begin);
  while (reinterpret_cast<const char *>(record) < end) {
    seen.names.emplace_back(record->kind == roctracer::kCommandKernel ? record->kernel_name
                                                                      : "copy");
    seen.correlations.push_back(record->correlation);
    tracer().functions().next_record(record, &record);
  }
}

struct Tracing {
  explicit Tracing(size_t records = 1000) {
    tracer_seen.calls.clear();
    tracer_seen.names.clear();
    tracer_seen.correlations.clear();
    tracer_seen.ranges.clear();
    const RoctracerFunctions &call = tracer().functions();
    roctracer::PoolProperties properties;
    properties.buffer_bytes = records * sizeof(roctracer::Record);
    properties.buffer_callback = on_records;
    properties.buffer_user = &tracer_seen;
    CHECK_EQ(call.open_pool(&properties, &pool), static_cast<int>(roctracer::kSuccess));
    CHECK_EQ(call.enable_domain_activity(roctracer::kDomainHipOps, pool), 0);
    for (uint32_t operation : {roctracer::kHipModuleLaunchKernel, roctracer::kHipGraphLaunch})
      CHECK_EQ(call.enable_op_callback(roctracer::kDomainHipApi, operation, on_api, &tracer_seen),
               0);
    CHECK_EQ(call.enable_domain_callback(roctracer::kDomainRoctx, on_api, &tracer_seen), 0);
  }
  ~Tracing() {
    const RoctracerFunctions &call = tracer().functions();
    call.disable_domain_callback(roctracer::kDomainRoctx);
    call.disable_domain_callback(roctracer::kDomainHipApi);
    call.disable_domain_activity(roctracer::kDomainHipOps);
    call.close_pool(pool);
  }
  void flush() const { CHECK_EQ(tracer().functions().flush_activity(pool), 0); }
  void *pool = nullptr;
};

Seen sdk_seen;
rocprofiler::Handle context;
rocprofiler::Handle buffer;
std::atomic<int> initializations{0};

const RocprofilerLibrary &sdk() {
  static const RocprofilerLibrary library =
      RocprofilerLibrary::open({{std::getenv("PROTON_BENCH_ROCPROFILER_LIB"), "test"}});
  return library;
}

void on_call(rocprofiler::CallbackRecord record, rocprofiler::UserValue *user, void *seen_by) {
  Seen &seen = *static_cast<Seen *>(seen_by);
  const bool is_enter = record.phase == rocprofiler::kEnter;
  if (is_enter)
    user->value = record.correlation.internal;
  else
    CHECK_EQ(user->value, record.correlation.internal);
  seen.add(seen.calls, call_text(is_enter, static_cast<uint64_t>(record.operation),
                                 record.correlation.internal));
}

void on_symbol(rocprofiler::CallbackRecord record, rocprofiler::UserValue *, void *seen_by) {
  Seen &seen = *static_cast<Seen *>(seen_by);
  const auto &symbol = *static_cast<const rocprofiler::KernelSymbolData *>(record.payload);
  seen.add(seen.ranges, symbol.name);
}

void on_buffer(rocprofiler::Handle, rocprofiler::Handle, rocprofiler::RecordHeader **headers,
               size_t count, void *seen_by, uint64_t dropped) {
  Seen &seen = *static_cast<Seen *>(seen_by);
  std::lock_guard lock(seen.mutex);
  seen.thread = std::this_thread::get_id();
  seen.dropped = dropped;
  for (size_t i = 0; i < count; ++i) {
    CHECK_EQ(headers[i]->category, rocprofiler::kCategoryTracing);
    CHECK_EQ(headers[i]->kind, static_cast<uint32_t>(rocprofiler::kBufferKernelDispatch));
    const auto &record = *static_cast<const rocprofiler::DispatchRecord *>(headers[i]->payload);
    seen.correlations.push_back(record.correlation.internal);
    seen.externals.push_back(record.correlation.external.value);
  }
}

int on_request(uint64_t, rocprofiler::Handle, int kind, int, uint64_t internal,
               rocprofiler::UserValue *external, void *) {
  CHECK_EQ(kind, static_cast<int>(rocprofiler::kRequestKernelDispatch));
  external->value = internal + 1000;
  return 0;
}

int initialize(rocprofiler::ClientFinalize, void *) {
  ++initializations;
  const RocprofilerFunctions &call = sdk().functions();
  const int calls[] = {rocprofiler::kHipModuleLaunchKernel, rocprofiler::kHipGraphLaunch};
  const int kinds[] = {rocprofiler::kRequestKernelDispatch};
  CHECK_EQ(call.create_context(&context), 0);
  CHECK_EQ(call.configure_callback_tracing(context, rocprofiler::kCallbackHipRuntimeApi, calls, 2,
                                           on_call, &sdk_seen),
           0);
  CHECK_EQ(call.configure_callback_tracing(context, rocprofiler::kCallbackCodeObject, nullptr, 0,
                                           on_symbol, &sdk_seen),
           0);
  CHECK_EQ(call.configure_callback_tracing(context, rocprofiler::kCallbackCodeObject, nullptr, 0,
                                           on_symbol, &sdk_seen),
           static_cast<int>(rocprofiler::kErrorServiceAlreadyConfigured));
  CHECK_EQ(call.create_buffer(context, 1 << 16, 1 << 15, rocprofiler::kPolicyLossless, on_buffer,
                              &sdk_seen, &buffer),
           0);
  CHECK_EQ(call.configure_buffer_tracing(context, rocprofiler::kBufferKernelDispatch, nullptr, 0,
                                         buffer),
           0);
  CHECK_EQ(call.configure_correlation_request(context, kinds, 1, on_request, nullptr), 0);
  return 0;
}

rocprofiler::ConfigureResult *configure(uint32_t version, const char *, uint32_t,
                                        rocprofiler::ClientId *client) {
  CHECK_EQ(version, 10201U);
  client->name = "test";
  static rocprofiler::ConfigureResult result;
  result.initialize = initialize;
  return &result;
}

/// Registers once for the process.
void register_tool() {
  static const int status = sdk().functions().force_configure(configure);
  CHECK_EQ(status, 0);
}

} // namespace

// First: the others start HIP.
TEST(a_tool_registers_before_hip_starts_and_only_once) {
  register_tool();
  fake_amd_start_runtime();
  int is_initialized = 0;

  CHECK_EQ(initializations, 1);
  CHECK_EQ(sdk().functions().is_initialized(&is_initialized), 0);
  CHECK_EQ(is_initialized, 1);
  CHECK_EQ(sdk().functions().force_configure(configure),
           static_cast<int>(rocprofiler::kErrorConfigurationLocked));
  rocprofiler::Handle other;
  CHECK_EQ(sdk().functions().create_context(&other),
           static_cast<int>(rocprofiler::kErrorConfigurationLocked));
}

TEST(roctracer_reports_requested_calls_and_all_records) {
  Tracing tracing;
  const uint64_t first = fake_amd_launch("first", 7);
  fake_amd_copy(1, 4096, 7);
  const uint64_t second = fake_amd_launch("second", 8);
  tracing.flush();

  const std::vector<std::string> calls = {call_text(true, 169, first), call_text(false, 169, first),
                                          call_text(true, 169, second),
                                          call_text(false, 169, second)};
  CHECK(tracer_seen.calls == calls);
  CHECK(tracer_seen.names == (std::vector<std::string>{"first", "copy", "second"}));
  CHECK_EQ(tracer_seen.correlations.back(), second);
  CHECK(tracer_seen.thread != std::this_thread::get_id());
}

TEST(full_blocks_come_without_being_asked_for) {
  Tracing tracing(4);
  for (int i = 0; i < 9; ++i)
    fake_amd_launch("kernel", 7);
  fake_amd_drain();

  CHECK_EQ(tracer_seen.names.size(), 8U);
  CHECK_EQ(fake_amd_records_waiting(), 1U);
}

TEST(ranges_are_reported) {
  Tracing tracing;
  fake_amd_range_push("range");
  fake_amd_range_pop();

  CHECK(tracer_seen.ranges == (std::vector<std::string>{"range", "-"}));
}

TEST(captured_launches_leave_records_when_the_graph_is_launched) {
  Tracing tracing;
  fake_amd_capture_begin(7);
  fake_amd_launch("first", 7);
  fake_amd_capture_join(7, 8);
  fake_amd_launch("second", 8);
  const uint32_t executable = fake_amd_graph_instantiate(fake_amd_capture_end(7));
  tracing.flush();
  CHECK_EQ(tracer_seen.names.size(), 0U);
  fake_amd_graph_order(1);
  const uint64_t launch = fake_amd_graph_launch(executable, 7);
  fake_amd_graph_order(0);
  tracing.flush();

  CHECK(tracer_seen.names == (std::vector<std::string>{"second", "first"}));
  CHECK(tracer_seen.correlations == (std::vector<uint64_t>{launch, launch}));
}

TEST(records_of_a_held_device_wait_for_it) {
  Tracing tracing;
  fake_amd_hold(0);
  fake_amd_launch("kernel", 7);
  tracing.flush();
  CHECK_EQ(tracer_seen.names.size(), 0U);
  fake_amd_release(0);
  tracing.flush();

  CHECK_EQ(tracer_seen.names.size(), 1U);
}

TEST(entry_points_fail_when_they_shall) {
  const uint64_t calls = fake_amd_calls("*");
  fake_amd_fail(("*@" + std::to_string(calls + 2) + "=-6").c_str());
  uint64_t now = 0;

  CHECK_EQ(tracer().functions().get_timestamp(&now), 0);
  CHECK_EQ(tracer().functions().get_timestamp(&now),
           static_cast<int>(roctracer::kErrorMemoryAllocation));
  CHECK_EQ(tracer().functions().get_timestamp(&now), 0);
  fake_amd_fail("roctracer_get_timestamp=-1");
  CHECK_EQ(tracer().functions().get_timestamp(&now), static_cast<int>(roctracer::kError));
  fake_amd_fail(nullptr);
}

TEST(rocprofiler_reports_calls_kernels_and_dispatches) {
  register_tool();
  fake_amd_launch("known before", 7);
  CHECK_EQ(sdk().functions().start_context(context), 0);
  const uint64_t launch = fake_amd_launch("loaded now", 7);
  CHECK_EQ(sdk().functions().flush_buffer(buffer), 0);
  const uint64_t lost = fake_amd_launch("loaded now", 7);
  CHECK_EQ(lost, launch + 1);
  fake_amd_drop(1);
  CHECK_EQ(sdk().functions().flush_buffer(buffer), 0);
  fake_amd_launch("loaded now", 7);
  fake_amd_shuffle(1);
  const uint64_t last = fake_amd_launch("loaded now", 7);
  CHECK_EQ(sdk().functions().flush_buffer(buffer), 0);
  fake_amd_shuffle(0);
  CHECK_EQ(sdk().functions().stop_context(context), 0);
  fake_amd_launch("loaded now", 7);
  CHECK_EQ(sdk().functions().flush_buffer(buffer), 0);

  const std::vector<std::string> calls = {call_text(true, 308, launch),
                                          call_text(false, 308, launch)};
  CHECK_EQ(sdk_seen.calls.size(), 8U);
  CHECK(std::vector<std::string>(sdk_seen.calls.begin(), sdk_seen.calls.begin() + 2) == calls);
  bool knows_old = false;
  bool knows_new = false;
  for (const std::string &name : sdk_seen.ranges) {
    knows_old |= name == "known before.kd";
    knows_new |= name == "loaded now.kd";
  }
  CHECK(knows_old);
  CHECK(knows_new);
  CHECK(sdk_seen.correlations == (std::vector<uint64_t>{launch, lost, last}));
  CHECK_EQ(sdk_seen.externals.back(), last + 1000);
  CHECK_EQ(sdk_seen.dropped, 1U);
  CHECK(sdk_seen.thread != std::this_thread::get_id());
}
