#include "collector/roctracer/roctracer_collector.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

#include "collector/hip/call_reader.h"
#include "collector/hip/hip_engine.h"
#include "driver/roctracer/roctracer_hip_calls.h"
#include "driver/roctracer/roctracer_library.h"
#include "support/error.h"

namespace proton {
namespace {

struct Engine : HipEngine {
  explicit Engine(RecordSink &to) : HipEngine(to, false) {}

  std::optional<RoctracerLibrary> library;
  void *pool = nullptr; ///< never closed: threads may launch while a session ends
  size_t buffer_bytes = 0;
  std::vector<int> operations; ///< with a callback of ours
  bool has_ranges = false;
  bool has_activity = false;
  GpuNodes nodes; ///< under the lock of `records`
};

Engine &engine(RecordSink &sink) {
  static Engine *instance = [&] {
    watch_forks();
    return new Engine(sink);
  }();
  return *instance;
}

const char *copy_name(uint32_t command) noexcept {
  switch (command) {
  case roctracer::kCommandCopyDeviceToHost:
  case roctracer::kCommandCopyDeviceToHostRect:
    return "<memcpy D2H>";
  case roctracer::kCommandCopyHostToDevice:
  case roctracer::kCommandCopyHostToDeviceRect:
    return "<memcpy H2D>";
  case roctracer::kCommandCopyDeviceToDevice:
  case roctracer::kCommandCopyDeviceToDeviceRect:
    return "<memcpy D2D>";
  case roctracer::kCommandFill:
    return "<memset>";
  default:
    return "<memcpy>";
  }
}

void read_record(Engine &self, const roctracer::Record &record, RecordBatch &batch) {
  if (record.domain != roctracer::kDomainHipOps)
    return;
  int device = self.nodes.ordinal(record.device, *self.hip_devices);
  if (record.op == roctracer::kOpDispatch) {
    HipDispatch dispatch;
    dispatch.correlation = record.correlation;
    dispatch.name = record.kernel_name;
    dispatch.device = device;
    dispatch.queue = static_cast<uint32_t>(record.queue);
    dispatch.order = record.begin_ns;
    dispatch.start_ns = record.begin_ns;
    dispatch.end_ns = record.end_ns;
    self.records.add(dispatch, batch);
  } else if (record.op == roctracer::kOpCopy) {
    HipCopy copy;
    copy.correlation = record.correlation;
    copy.name = copy_name(record.kind);
    copy.bytes = record.bytes;
    copy.device = device;
    copy.queue = static_cast<uint32_t>(record.queue);
    copy.start_ns = record.begin_ns;
    copy.end_ns = record.end_ns;
    self.records.add(copy, batch);
  }
}

extern "C" {

void proton_bench_roctracer_hip(uint32_t domain, uint32_t operation, const void *data,
                                void *engine) {
  if (!data || domain != roctracer::kDomainHipApi || is_forked_from_collector())
    return;
  auto &self = *static_cast<Engine *>(engine);
  const auto &api = *static_cast<const roctracer::HipApiData *>(data);
  HipApiCall call = read_roctracer_call(operation, data);
  if (api.phase == roctracer::kEnter)
    self.calls.enter(call, api.correlation);
  else
    self.calls.leave(call, false); // the library does not tell what the call answered
}

void proton_bench_roctracer_range(uint32_t, uint32_t operation, const void *data, void *engine) {
  const auto *call = static_cast<const roctx::CallbackData *>(data);
  if (call)
    static_cast<Engine *>(engine)->range(operation, call->message);
}

void proton_bench_roctracer_records(const char *begin, const char *end, void *engine) {
  if (is_forked_from_collector())
    return; // they are the parent's, and so are the locks
  auto &self = *static_cast<Engine *>(engine);
  bool is_readable = true;
  self.records.read([&](RecordBatch &batch) {
    const auto *record = reinterpret_cast<const roctracer::Record *>(begin);
    while (reinterpret_cast<const char *>(record) < end && is_readable) {
      read_record(self, *record, batch);
      const roctracer::Record *next = nullptr;
      is_readable = self.library->functions().next_record(record, &next) == roctracer::kSuccess &&
                    next > record;
      record = next;
    }
  });
  if (!is_readable)
    self.sink.dropped({"rest of a buffer of roctracer not readable", 1, true});
}

} // extern "C"

bool read_clock(const void *library, uint64_t &time_ns) noexcept {
  const auto &roctracer = static_cast<const RoctracerLibrary *>(library)->functions();
  return roctracer.get_timestamp(&time_ns) == roctracer::kSuccess;
}

/// Switches off all but callbacks of graphs: those are followed for as long as the process lives,
/// because a handle may be another graph's by the next start. How many of the calls failed.
uint64_t switch_off(Engine &self) noexcept {
  const RoctracerFunctions &library = self.library->functions();
  uint64_t failed = 0;
  auto count = [&failed](roctracer::Status status) {
    failed += status == roctracer::kSuccess ? 0 : 1;
  };
  std::erase_if(self.operations, [&](int operation) {
    if (is_graph_operation(operation))
      return false;
    count(library.disable_op_callback(roctracer::kDomainHipApi, static_cast<uint32_t>(operation)));
    return true;
  });
  if (self.has_ranges)
    count(library.disable_domain_callback(roctracer::kDomainRoctx));
  self.has_ranges = false;
  if (self.has_activity)
    count(library.disable_domain_activity(roctracer::kDomainHipOps));
  self.has_activity = false;
  return failed;
}

/// The steps of a start, each of which is undone by `switch_off`.
void switch_on(Engine &self, const HipOptions &options) {
  const RoctracerLibrary &library = *self.library;
  const RoctracerFunctions &calls = library.functions();
  roctracer::PoolProperties properties;
  properties.buffer_bytes = options.buffer_bytes;
  properties.buffer_callback = proton_bench_roctracer_records;
  properties.buffer_user = &self;
  if (!self.pool) {
    library.check(calls.open_pool(&properties, &self.pool), "roctracer_open_pool_expl");
    self.buffer_bytes = options.buffer_bytes;
  }
  // Callbacks before activities: a kernel that is recorded was seen being launched.
  for (int operation : roctracer_operations(options.copies)) {
    if (std::find(self.operations.begin(), self.operations.end(), operation) !=
        self.operations.end())
      continue;
    library.check(calls.enable_op_callback(roctracer::kDomainHipApi,
                                           static_cast<uint32_t>(operation),
                                           proton_bench_roctracer_hip, &self),
                  "roctracer_enable_op_callback");
    self.operations.push_back(operation);
  }
  if (options.roctx) {
    library.check(
        calls.enable_domain_callback(roctracer::kDomainRoctx, proton_bench_roctracer_range, &self),
        "roctracer_enable_domain_callback");
    self.has_ranges = true;
  }
  library.check(calls.enable_domain_activity(roctracer::kDomainHipOps, self.pool),
                "roctracer_enable_domain_activity_expl");
  self.has_activity = true;
  if (calls.start)
    calls.start();
}

void flush_pool(Engine &self) noexcept {
  if (self.pool && self.library->functions().flush_activity(self.pool) != roctracer::kSuccess)
    self.sink.dropped({"failed roctracer_flush_activity_expl", 1, true});
}

class Records : public RecordSource {
public:
  explicit Records(Engine &engine) : engine_(engine) {}
  void wait_for_devices() noexcept override { engine_.wait_for_devices(); }
  void hand_over_records() noexcept override { flush_pool(engine_); }
  uint64_t dropped() const noexcept override { return engine_.records.dropped(); }

private:
  Engine &engine_;
};

} // namespace

RoctracerCollector::~RoctracerCollector() { stop(); }

void RoctracerCollector::start() {
  refuse_forked("roctracer");
  Engine &self = engine(sink_);
  std::lock_guard lock(self.mutex);
  if (self.is_running)
    throw Error(ErrorCode::kUnavailable, "the roctracer collector runs already; stop it first");
  if (!self.library)
    self.library = RoctracerLibrary::open(options_.candidates);
  self.open_hip(options_);
  self.nodes.set_candidates(options_.hsa_candidates);
  try {
    switch_on(self, options_);
  } catch (...) {
    switch_off(self);
    throw;
  }
  self.arm(options_, read_clock, &*self.library);
  if (options_.flush_period_ms != 0)
    self.flusher.start(options_.flush_period_ms, [&self] { flush_pool(self); });
  is_running_ = true;
}

void RoctracerCollector::flush() {
  if (!is_running_ || is_forked_from_collector())
    return;
  Engine &self = engine(sink_);
  Records records(self);
  self.flush(records);
}

void RoctracerCollector::stop() {
  if (!is_running_)
    return;
  is_running_ = false;
  if (is_forked_from_collector())
    return; // the library's threads and locks belong to the parent
  Engine &self = engine(sink_);
  std::lock_guard lock(self.mutex);
  Records records(self);
  self.disarm(records);
  uint64_t failed = switch_off(self);
  flush_pool(self); // no session wants what came meanwhile
  if (failed != 0)
    sink_.dropped({"failed call while roctracer was switched off", failed, true});
}

HipFacts RoctracerCollector::facts() const {
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
  facts.buffer_bytes = self.buffer_bytes;
  facts.devices = self.records.devices().list();
  return facts;
}

void GpuNodes::map(const HipDevices &devices) {
  is_mapped_ = true;
  std::vector<HsaGpu> gpus;
  try {
    gpus = HsaRuntime::open(candidates_).gpus();
  } catch (const Error &) { // without ROCr devices stay unknown
    return;
  }
  std::vector<GpuIdentity> identities;
  for (const HsaGpu &gpu : gpus)
    identities.push_back({gpu.uuid, gpu.pci});
  std::vector<int> ordinals = ordinals_by_identity(identities, devices.identities());
  if (ordinals.empty()) // ROCr has applied its own variable
    ordinals = ordinals_by_variables(identities, {"", VisibleVariables::of_environment().hip});
  for (size_t i = 0; i < gpus.size(); ++i)
    ordinals_[static_cast<int>(gpus[i].driver_node)] = ordinals[i];
}

int GpuNodes::ordinal(int node, const HipDevices &devices) {
  if (!is_mapped_)
    map(devices);
  auto found = ordinals_.find(node);
  return found == ordinals_.end() ? -1 : found->second;
}

namespace {

struct Layout {
#define PROTON_HIP_USE(parameters) using parameters = roctracer::parameters;
  PROTON_HIP_PARAMETERS(PROTON_HIP_USE)
#undef PROTON_HIP_USE
};

#define PROTON_HIP_OPERATION(name, form, ...) {roctracer::kHip##name, HipCallForm::form},
constexpr HipOperation kOperations[] = {PROTON_HIP_CALLS(PROTON_HIP_OPERATION)};
#undef PROTON_HIP_OPERATION

const HipOperationTable &table() {
  static const auto *operations = new HipOperationTable(kOperations); // calls come at any time
  return *operations;
}

} // namespace

std::vector<int> roctracer_operations(bool copies) { return table().numbers(copies); }

bool is_graph_operation(int operation) noexcept { return changes_graphs(table().find(operation)); }

HipApiCall read_roctracer_call(uint32_t operation, const void *data) noexcept {
  return HipCallReader<Layout>::read(table().find(static_cast<int>(operation)),
                                     static_cast<const char *>(data) + roctracer::kHipParameters);
}

} // namespace proton
