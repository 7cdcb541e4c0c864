#include "collector/rocprofiler/rocprofiler_collector.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "collector/hip/call_reader.h"
#include "collector/hip/hip_engine.h"
#include "collector/hip/hip_records.h"
#include "driver/hip/hip_driver.h"
#include "driver/hip/hsa_runtime.h"
#include "driver/rocprofiler/rocprofiler_abi.h"
#include "driver/rocprofiler/rocprofiler_hip_calls.h"
#include "support/error.h"

namespace proton {
namespace {

struct Engine : HipEngine {
  explicit Engine(RecordSink &to) : HipEngine(to, true), reader(records, symbols) {}

  std::optional<RocprofilerLibrary> library;
  std::optional<RoctxLibrary> roctx;
  RocprofilerServices services;
  KernelSymbols symbols;
  RocprofilerRecords reader;
};

Engine *g_engine = nullptr; // callbacks of libroctx64 have no argument of ours

Engine &engine(RecordSink &sink) {
  static Engine *instance = [&] {
    watch_forks();
    return g_engine = new Engine(sink);
  }();
  return *instance;
}

extern "C" {

void proton_bench_rocprofiler_hip(rocprofiler::CallbackRecord record, rocprofiler::UserValue *,
                                  void *engine) {
  auto &self = *static_cast<Engine *>(engine);
  if (!record.payload || is_forked_from_collector())
    return;
  HipApiCall call = read_hip_call(record.operation, record.payload);
  if (record.phase == rocprofiler::kEnter)
    self.calls.enter(call, record.correlation.internal);
  else if (record.phase == rocprofiler::kExit)
    self.calls.leave(call, has_failed(record.payload));
}

void proton_bench_rocprofiler_marker(rocprofiler::CallbackRecord record, rocprofiler::UserValue *,
                                     void *engine) {
  const auto *marker = static_cast<const rocprofiler::MarkerData *>(record.payload);
  if (marker && record.phase == rocprofiler::kEnter)
    static_cast<Engine *>(engine)->range(
        static_cast<uint32_t>(record.operation),
        record.operation == static_cast<int>(roctx::kRangePush) ? marker->message : nullptr);
}

int proton_bench_roctx(uint32_t, uint32_t operation, void *data) {
  const auto *call = static_cast<const roctx::CallbackData *>(data);
  if (call)
    g_engine->range(operation, operation == roctx::kRangePush ? call->message : nullptr);
  return 0;
}

void proton_bench_rocprofiler_code(rocprofiler::CallbackRecord record, rocprofiler::UserValue *,
                                   void *engine) {
  if (is_forked_from_collector())
    return;
  auto &self = *static_cast<Engine *>(engine);
  bool is_symbol = record.operation == rocprofiler::kKernelSymbolRegister &&
                   record.phase == rocprofiler::kLoad && record.payload;
  try {
    if (is_symbol)
      self.symbols.add(*static_cast<const rocprofiler::KernelSymbolData *>(record.payload));
  } catch (...) { // no memory: its launches have no name
    self.sink.dropped({"no memory for names of kernels", 1, false});
  }
}

void proton_bench_rocprofiler_records(rocprofiler::Handle, rocprofiler::Handle,
                                      rocprofiler::RecordHeader **headers, size_t count,
                                      void *engine, uint64_t dropped) {
  if (is_forked_from_collector())
    return; // they are the parent's, and so are the locks
  static_cast<Engine *>(engine)->reader.read({headers, headers ? count : 0}, dropped);
}

int proton_bench_rocprofiler_tag(uint64_t, rocprofiler::Handle, int, int, uint64_t,
                                 rocprofiler::UserValue *external, void *) {
  external->value = HipCalls::tag_dispatch();
  return 0;
}

} // extern "C"

void load(Engine &self, const HipOptions &options) {
  if (!self.library)
    self.library = RocprofilerLibrary::open(options.candidates);
  self.services.configure(*self.library,
                          {proton_bench_rocprofiler_hip, proton_bench_rocprofiler_marker,
                           proton_bench_rocprofiler_code, proton_bench_rocprofiler_records,
                           proton_bench_rocprofiler_tag, &self},
                          options.buffer_bytes, options.copies);
  if (self.driver)
    return;
  self.reader.agents().list(*self.library);
  self.open_hip(options); // after the registration, which HIP's start looks for
  self.reader.set_devices(&*self.hip_devices);
}

bool read_clock(const void *library, uint64_t &time_ns) noexcept {
  const auto &sdk = static_cast<const RocprofilerLibrary *>(library)->functions();
  return sdk.get_timestamp(&time_ns) == rocprofiler::kSuccess;
}

/// ROCTX of before rocprofiler-sdk keeps its ranges to itself.
void watch_old_roctx(Engine &self, const HipOptions &options) {
  if (!options.roctx || options.roctx_candidates.empty() || self.roctx)
    return;
  try {
    self.roctx = RoctxLibrary::open(options.roctx_candidates);
    self.roctx->set_callback(proton_bench_roctx);
  } catch (const Error &) { // without the library there are no calls
  }
}

void flush_buffer(Engine &self) noexcept {
  if (!self.services.flush())
    self.sink.dropped({"failed rocprofiler_flush_buffer", 1, true});
}

class Records : public RecordSource {
public:
  explicit Records(Engine &engine) : engine_(engine) {}
  void wait_for_devices() noexcept override { engine_.wait_for_devices(); }
  void hand_over_records() noexcept override { flush_buffer(engine_); }
  uint64_t dropped() const noexcept override { return engine_.records.dropped(); }

private:
  Engine &engine_;
};

} // namespace

RocprofilerCollector::~RocprofilerCollector() { stop(); }

void RocprofilerCollector::start() {
  refuse_forked("rocprofiler-sdk");
  Engine &self = engine(sink_);
  std::lock_guard lock(self.mutex);
  if (self.is_running)
    throw Error(ErrorCode::kUnavailable, "the rocprofiler collector runs already; stop it first");
  load(self, options_);
  watch_old_roctx(self, options_);
  self.services.start();
  self.arm(options_, read_clock, &*self.library);
  if (options_.flush_period_ms != 0)
    self.flusher.start(options_.flush_period_ms, [&self] { flush_buffer(self); });
  is_running_ = true;
}

void RocprofilerCollector::flush() {
  if (!is_running_ || is_forked_from_collector())
    return;
  Engine &self = engine(sink_);
  Records records(self);
  self.flush(records);
}

void RocprofilerCollector::stop() {
  if (!is_running_)
    return;
  is_running_ = false;
  if (is_forked_from_collector())
    return; // the library's threads and locks belong to the parent
  Engine &self = engine(sink_);
  std::lock_guard lock(self.mutex);
  Records records(self);
  self.disarm(records);
}

HipFacts RocprofilerCollector::facts() const {
  HipFacts facts;
  Engine &self = engine(sink_);
  std::lock_guard lock(self.mutex);
  if (!self.library || !self.driver)
    return facts;
  facts.library = self.library->path();
  facts.origin = self.library->origin();
  facts.version = self.library->version();
  facts.driver = self.driver->version();
  facts.clock_drift_ns = self.records.clock_drift_ns();
  facts.buffer_bytes = self.services.buffer_bytes();
  facts.devices = self.records.devices().list();
  return facts;
}

namespace {

using rocprofiler::read_agent;
namespace at = rocprofiler::agent_offset;

/// As ROCR_VISIBLE_DEVICES takes it: of the number's bytes the first is the lowest.
std::string uuid_text(const void *agent) {
  auto number = read_agent<uint64_t>(agent, at::kUuid);
  if (number == 0)
    return {};
  char text[24];
  std::snprintf(text, sizeof text, "GPU-%016" PRIx64, number);
  return text;
}

} // namespace

rocprofiler::Status Agents::take(int, const void **agents, size_t count, void *self) noexcept {
  try {
    auto &gpus = static_cast<Agents *>(self)->gpus_;
    gpus.clear();
    for (size_t i = 0; i < count; ++i) {
      const void *agent = agents[i];
      if (read_agent<uint64_t>(agent, at::kSize) < rocprofiler::kAgentBytes)
        return rocprofiler::kErrorIncompatibleAbi;
      if (read_agent<int>(agent, at::kType) != rocprofiler::kAgentGpu)
        continue;
      Gpu gpu{read_agent<uint64_t>(agent, at::kId),
              read_agent<int32_t>(agent, at::kLogicalNodeOfType),
              {uuid_text(agent), pci_text(read_agent<uint32_t>(agent, at::kPciDomain),
                                          read_agent<uint32_t>(agent, at::kLocation))}};
      gpus.push_back(std::move(gpu));
    }
    std::stable_sort(gpus.begin(), gpus.end(),
                     [](const Gpu &left, const Gpu &right) { return left.order < right.order; });
    return rocprofiler::kSuccess;
  } catch (...) { // no memory
    return rocprofiler::kErrorOutOfResources;
  }
}

void Agents::list(const RocprofilerLibrary &library) {
  library.check(library.functions().query_available_agents(rocprofiler::kAgentVersion0, take,
                                                           rocprofiler::kAgentBytes, this),
                "rocprofiler_query_available_agents");
}

void Agents::map(const HipDevices &devices) {
  std::vector<GpuIdentity> identities;
  for (const Gpu &gpu : gpus_)
    identities.push_back(gpu.identity);
  std::vector<int> ordinals = ordinals_by_identity(identities, devices.identities());
  if (ordinals.empty())
    ordinals = ordinals_by_variables(identities, VisibleVariables::of_environment());
  for (size_t i = 0; i < gpus_.size(); ++i)
    gpus_[i].ordinal = ordinals[i];
  is_mapped_ = true;
}

int Agents::ordinal(uint64_t agent, const HipDevices &devices) {
  if (!is_mapped_)
    map(devices);
  for (const Gpu &gpu : gpus_)
    if (gpu.handle == agent)
      return gpu.ordinal;
  return -1;
}

void KernelSymbols::add(const rocprofiler::KernelSymbolData &symbol) {
  auto added = std::make_unique<KernelSymbol>();
  if (symbol.name)
    added->name.assign(symbol.name, plain_length(symbol.name));
  added->registers = symbol.vector_registers;
  std::lock_guard lock(mutex_);
  symbols_.try_emplace(symbol.kernel, std::move(added));
}

const KernelSymbol *KernelSymbols::find(uint64_t kernel) const {
  std::lock_guard lock(mutex_);
  auto found = symbols_.find(kernel);
  return found == symbols_.end() ? nullptr : found->second.get();
}

namespace {

namespace sdk = rocprofiler;

const char *copy_name(int operation) noexcept {
  static constexpr const char *kNames[] = {"<memcpy>", "<memcpy H2H>", "<memcpy H2D>",
                                           "<memcpy D2H>", "<memcpy D2D>"};
  bool is_known = operation > 0 && static_cast<size_t>(operation) < std::size(kNames);
  return kNames[is_known ? static_cast<size_t>(operation) : 0];
}

} // namespace

void RocprofilerRecords::read(std::span<sdk::RecordHeader *> headers, uint64_t dropped) noexcept {
  uint64_t more = 0;
  records_.read([&](RecordBatch &batch) {
    more = dropped - std::min(dropped, dropped_before_);
    dropped_before_ += more;
    for (const sdk::RecordHeader *header : headers) {
      if (!header || header->category != sdk::kCategoryTracing || !header->payload)
        continue;
      if (header->kind == sdk::kBufferKernelDispatch)
        read_dispatch(*static_cast<const sdk::DispatchRecord *>(header->payload), batch);
      else if (header->kind == sdk::kBufferMemoryCopy)
        read_copy(*static_cast<const sdk::CopyRecord *>(header->payload), batch);
    }
  });
  records_.count_dropped(more);
}

void RocprofilerRecords::read_dispatch(const sdk::DispatchRecord &record, RecordBatch &batch) {
  const sdk::DispatchInfo &info = record.dispatch;
  const KernelSymbol *symbol = symbols_.find(info.kernel);
  HipDispatch dispatch;
  dispatch.correlation = record.correlation.internal;
  dispatch.tag = record.correlation.external.value;
  dispatch.name = symbol ? symbol->name.c_str() : nullptr;
  std::copy(std::begin(info.work_items), std::end(info.work_items), dispatch.work_items);
  std::copy(std::begin(info.block), std::end(info.block), dispatch.block);
  dispatch.shared_bytes = info.group_segment_bytes;
  dispatch.registers = symbol ? symbol->registers : 0;
  dispatch.device = agents_.ordinal(info.agent, *devices_);
  dispatch.queue = static_cast<uint32_t>(info.queue);
  dispatch.order = info.dispatch;
  dispatch.start_ns = record.start_ns;
  dispatch.end_ns = record.end_ns;
  records_.add(dispatch, batch);
}

void RocprofilerRecords::read_copy(const sdk::CopyRecord &record, RecordBatch &batch) {
  HipCopy copy;
  copy.correlation = record.correlation.internal;
  copy.tag = record.correlation.external.value;
  copy.name = copy_name(record.operation);
  copy.bytes = record.bytes;
  // The GPU of the two; between GPUs the one that is written to.
  int target = agents_.ordinal(record.target_agent, *devices_);
  copy.device = target >= 0 ? target : agents_.ordinal(record.source_agent, *devices_);
  copy.start_ns = record.start_ns;
  copy.end_ns = record.end_ns;
  records_.add(copy, batch);
}

namespace {

struct Layout {
#define PROTON_HIP_USE(parameters) using parameters = rocprofiler::parameters;
  PROTON_HIP_PARAMETERS(PROTON_HIP_USE)
#undef PROTON_HIP_USE
};

#define PROTON_HIP_OPERATION(name, form, ...) {rocprofiler::kHip##name, HipCallForm::form},
#define PROTON_HIP_THREAD_OPERATION(name, form, ...)                                               \
  {rocprofiler::kHip##name##Spt, HipCallForm::form},
// clang-format off
constexpr HipOperation kOperations[] = {
    PROTON_HIP_CALLS(PROTON_HIP_OPERATION)
    PROTON_HIP_SDK_CALLS(PROTON_HIP_OPERATION)
    PROTON_HIP_THREAD_CALLS(PROTON_HIP_THREAD_OPERATION)
};
// clang-format on
#undef PROTON_HIP_OPERATION
#undef PROTON_HIP_THREAD_OPERATION

const HipOperationTable &table() {
  static const auto *operations = new HipOperationTable(kOperations); // calls come at any time
  return *operations;
}

} // namespace

std::vector<int> traced_operations(bool copies) { return table().numbers(copies); }

HipApiCall read_hip_call(int operation, const void *payload) noexcept {
  HipApiCall call = HipCallReader<Layout>::read(
      table().find(operation), static_cast<const char *>(payload) + rocprofiler::kHipParameters);
  bool is_of_thread =
      operation >= rocprofiler::kFirstHipThreadCall && operation <= rocprofiler::kLastHipThreadCall;
  if (is_of_thread && !call.stream)
    call.stream = reinterpret_cast<void *>(hip::kStreamPerThread);
  return call;
}

bool has_failed(const void *payload) noexcept {
  hip::Result result = hip::kSuccess;
  std::memcpy(&result,
              static_cast<const char *>(payload) + rocprofiler::kHipParameters +
                  rocprofiler::kHipParametersBytes,
              sizeof result);
  return result != hip::kSuccess;
}

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
