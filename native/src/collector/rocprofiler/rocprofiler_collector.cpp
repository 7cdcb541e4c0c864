#include "collector/rocprofiler/rocprofiler_collector.h"

#include <mutex>
#include <optional>

#include "collector/hip/hip_engine.h"
#include "collector/rocprofiler/record_stream.h"
#include "collector/rocprofiler/services.h"
#include "driver/hip/roctx_library.h"
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

} // namespace proton
