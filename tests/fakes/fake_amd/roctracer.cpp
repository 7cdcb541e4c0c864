// The double of libroctracer64: callbacks of the HIP API and of ROCTX, pools of records.
#include <array>
#include <cstring>
#include <memory>

#include "call_parameters.h"
#include "driver/hip/hip_driver.h"
#include "driver/roctracer/roctracer_hip_calls.h"
#include "driver/roctracer/roctracer_library.h"
#include "machine.h"
#include "record_blocks.h"

namespace fake {
namespace {

namespace roctracer = proton::roctracer;
namespace roctx = proton::roctx;

struct Layout {
  using LaunchKernelParams = roctracer::LaunchKernelParams;
  using CooperativeLaunchParams = roctracer::CooperativeLaunchParams;
  using ModuleLaunchParams = roctracer::ModuleLaunchParams;
  using ExtModuleLaunchParams = roctracer::ExtModuleLaunchParams;
  // After the configuration comes a copy of it, then the function.
  struct LaunchKernelExParams {
    const void *config;
    hip::LaunchConfig config_value;
    const void *function;
  };
  struct DrvLaunchKernelExParams {
    const void *config;
    hip::DriverLaunchConfig config_value;
    const void *function;
  };
  using GraphLaunchParams = roctracer::GraphLaunchParams;
  using StreamBeginCaptureParams = roctracer::StreamBeginCaptureParams;
  using StreamEndCaptureParams = roctracer::StreamEndCaptureParams;
  using GraphInstantiateParams = roctracer::GraphInstantiateParams;
  using GraphParams = roctracer::GraphParams;
  using GraphExecUpdateParams = roctracer::GraphExecUpdateParams;
  using GraphCloneParams = roctracer::GraphCloneParams;
  using GraphAddChildNodeParams = roctracer::GraphAddChildNodeParams;
  using GraphAddKernelNodeParams = roctracer::GraphAddKernelNodeParams;
  using CopyAsyncParams = roctracer::CopyAsyncParams;
  using SetAsyncParams = roctracer::SetAsyncParams;
  template <typename Params> static void set_function(Params &parameters, const HipCall &call) {
    std::memcpy(&parameters.config_value, parameters.config, sizeof parameters.config_value);
    parameters.function = call.function;
  }
};

/// By CallKind.
constexpr uint32_t kCalls[] = {
    roctracer::kHipModuleLaunchKernel,
    roctracer::kHipLaunchKernel,
    roctracer::kHipExtModuleLaunchKernel,
    roctracer::kHipLaunchCooperativeKernel,
    roctracer::kHipModuleLaunchCooperativeKernel,
    roctracer::kHipLaunchKernelExC,
    roctracer::kHipDrvLaunchKernelEx,
    roctracer::kHipExtLaunchKernel,
    roctracer::kHipMemcpyAsync,
    roctracer::kHipMemsetAsync,
    roctracer::kHipStreamBeginCapture,
    roctracer::kHipStreamEndCapture,
    roctracer::kHipGraphInstantiate,
    roctracer::kHipGraphLaunch,
    roctracer::kHipGraphExecUpdate,
    roctracer::kHipGraphClone,
    roctracer::kHipGraphAddChildGraphNode,
    roctracer::kHipGraphAddKernelNode,
    roctracer::kHipGraphDestroy,
    roctracer::kHipGraphExecDestroy,
};
static_assert(std::size(kCalls) == static_cast<size_t>(CallKind::kCount));
constexpr size_t kOps = 512;
constexpr size_t kDomains = 8;

struct Callback {
  std::atomic<roctracer::ApiCallback> function{nullptr};
  std::atomic<void *> user{nullptr};
};

using Blocks = RecordBlocks<roctracer::Record>;

struct Pool {
  explicit Pool(const roctracer::PoolProperties &properties)
      : blocks(properties.buffer_bytes / sizeof(roctracer::Record),
               [properties](std::vector<roctracer::Record> &block, uint64_t) {
                 const char *begin = reinterpret_cast<const char *>(block.data());
                 if (properties.buffer_callback != nullptr && !block.empty())
                   properties.buffer_callback(begin, begin + block.size() * sizeof block[0],
                                              properties.buffer_user);
               }) {}
  Blocks blocks;
};

uint32_t command_of(const Activity &activity) {
  if (activity.kind == ActivityKind::kKernel)
    return roctracer::kCommandKernel;
  if (activity.kind == ActivityKind::kSet)
    return roctracer::kCommandFill;
  switch (activity.copy_kind) {
  case hip::kCopyHostToDevice:
    return roctracer::kCommandCopyHostToDevice;
  case hip::kCopyDeviceToHost:
    return roctracer::kCommandCopyDeviceToHost;
  default:
    return roctracer::kCommandCopyDeviceToDevice;
  }
}

class Roctracer final : public Tracer {
public:
  bool wants(CallKind kind) override {
    return callback_of(roctracer::kDomainHipApi, kCalls[static_cast<size_t>(kind)])
                   .function.load(std::memory_order_relaxed) != nullptr &&
           is_started.load(std::memory_order_relaxed);
  }
  void enter(HipCall &call) override { tell(call, roctracer::kEnter); }
  void exit(HipCall &call) override { tell(call, roctracer::kExit); }

  bool dispatch(const Activity &, uint64_t &) override {
    return pool_of_activity.load(std::memory_order_acquire) != nullptr &&
           is_started.load(std::memory_order_relaxed);
  }

  void record(const Activity &activity, uint64_t) override {
    Pool *pool = pool_of_activity.load(std::memory_order_acquire);
    if (pool == nullptr)
      return;
    roctracer::Record record{};
    record.domain = roctracer::kDomainHipOps;
    record.kind = command_of(activity);
    const bool is_kernel = activity.kind == ActivityKind::kKernel;
    record.op = is_kernel ? roctracer::kOpDispatch : roctracer::kOpCopy;
    record.correlation = activity.correlation;
    record.begin_ns = activity.start_ns;
    record.end_ns = activity.end_ns;
    record.device = static_cast<int>(Gpu{activity.gpu}.node());
    record.queue = activity.kernel.stream;
    if (is_kernel)
      record.kernel_name = activity.kernel.name;
    else
      record.bytes = activity.bytes;
    pool->blocks.append(record);
  }

  void kernel_loaded(const Kernel &) override {}

  void range(uint32_t operation, const char *message, uint64_t id) override {
    Callback &callback = callback_of(roctracer::kDomainRoctx, operation);
    const roctracer::ApiCallback function = callback.function;
    const roctx::CallbackData data{message, id};
    if (function != nullptr && is_started)
      function(roctracer::kDomainRoctx, operation, &data, callback.user);
  }

  void drain() override {
    if (Pool *pool = pool_of_activity.load(); pool != nullptr)
      pool->blocks.drain();
  }
  uint64_t waiting() override {
    Pool *pool = pool_of_activity.load();
    return pool == nullptr ? 0 : pool->blocks.waiting();
  }

  Callback &callback_of(uint32_t domain, uint32_t op) {
    return callbacks[domain % kDomains][op % kOps];
  }

  std::array<std::array<Callback, kOps>, kDomains> callbacks;
  std::atomic<Pool *> pool_of_activity{nullptr};
  std::atomic<Pool *> default_pool{nullptr};
  std::atomic<bool> is_started{true};

private:
  void tell(HipCall &call, uint32_t phase) {
    const uint32_t op = kCalls[static_cast<size_t>(call.kind)];
    Callback &callback = callback_of(roctracer::kDomainHipApi, op);
    const roctracer::ApiCallback function = callback.function.load(std::memory_order_acquire);
    if (function == nullptr)
      return;
    struct {
      roctracer::HipApiData data;
      alignas(8) char parameters[kParameterBytes];
    } handed;
    static_assert(offsetof(decltype(handed), parameters) == roctracer::kHipParameters);
    handed.data = {call.correlation, phase};
    put_parameters<Layout>(call, handed.parameters);
    function(roctracer::kDomainHipApi, op, &handed, callback.user.load(std::memory_order_relaxed));
  }
};

Roctracer &tracer() {
  static Roctracer *instance = [] {
    auto *made = new Roctracer; // threads run after static destruction
    add_tracer(made);
    return made;
  }();
  return *instance;
}

/// A call may come between the two writes: if it finds the function, it finds its argument.
void set_callback(Callback &callback, roctracer::ApiCallback function, void *user) {
  if (function != nullptr)
    callback.user = user;
  callback.function = function;
}

int set_domain(uint32_t domain, roctracer::ApiCallback function, void *user) {
  if (domain >= kDomains)
    return roctracer::kErrorInvalidDomain;
  for (Callback &callback : tracer().callbacks[domain])
    set_callback(callback, function, user);
  return roctracer::kSuccess;
}

int set_op(uint32_t domain, uint32_t op, roctracer::ApiCallback function, void *user) {
  if (domain >= kDomains)
    return roctracer::kErrorInvalidDomain;
  if (op >= kOps)
    return roctracer::kErrorInvalidArgument;
  set_callback(tracer().callback_of(domain, op), function, user);
  return roctracer::kSuccess;
}

int enable_activity(uint32_t domain, void *pool) {
  if (domain != roctracer::kDomainHipOps)
    return roctracer::kErrorInvalidDomain;
  Pool *chosen = pool == nullptr ? tracer().default_pool.load() : static_cast<Pool *>(pool);
  if (chosen == nullptr)
    return roctracer::kErrorDefaultPoolUndefined;
  tracer().pool_of_activity = chosen;
  return roctracer::kSuccess;
}

int close_pool(Pool *pool) {
  if (pool == nullptr)
    return roctracer::kErrorDefaultPoolUndefined;
  Pool *present = pool;
  tracer().pool_of_activity.compare_exchange_strong(present, nullptr);
  present = pool;
  tracer().default_pool.compare_exchange_strong(present, nullptr);
  pool->blocks.flush();
  delete pool;
  return roctracer::kSuccess;
}

int flush_pool(void *pool) {
  Pool *chosen = pool == nullptr ? tracer().default_pool.load() : static_cast<Pool *>(pool);
  if (chosen == nullptr)
    return roctracer::kErrorDefaultPoolUndefined;
  chosen->blocks.flush();
  return roctracer::kSuccess;
}

} // namespace
} // namespace fake

using namespace fake;

FAKE_EXPORT uint32_t roctracer_version_major() { return 4; }
FAKE_EXPORT uint32_t roctracer_version_minor() { return 1; }
FAKE_EXPORT const char *roctracer_error_string() { return "made up by a test"; }
FAKE_EXPORT const char *roctracer_op_string(uint32_t, uint32_t, uint32_t kind) {
  return kind == roctracer::kCommandKernel ? "KernelExecution" : "CopyHostToDevice";
}
FAKE_EXPORT int roctracer_set_properties(uint32_t, void *) {
  FAULT(roctracer_set_properties);
  return roctracer::kSuccess;
}

FAKE_EXPORT int roctracer_enable_op_callback(uint32_t domain, uint32_t op,
                                             roctracer::ApiCallback function, void *user) {
  FAULT(roctracer_enable_op_callback);
  return set_op(domain, op, function, user);
}
FAKE_EXPORT int roctracer_disable_op_callback(uint32_t domain, uint32_t op) {
  FAULT(roctracer_disable_op_callback);
  return set_op(domain, op, nullptr, nullptr);
}
FAKE_EXPORT int roctracer_enable_domain_callback(uint32_t domain, roctracer::ApiCallback function,
                                                 void *user) {
  FAULT(roctracer_enable_domain_callback);
  return set_domain(domain, function, user);
}
FAKE_EXPORT int roctracer_disable_domain_callback(uint32_t domain) {
  FAULT(roctracer_disable_domain_callback);
  return set_domain(domain, nullptr, nullptr);
}

FAKE_EXPORT int roctracer_open_pool_expl(const roctracer::PoolProperties *properties, void **pool) {
  FAULT(roctracer_open_pool_expl);
  if (pool == nullptr && tracer().default_pool != nullptr)
    return roctracer::kErrorDefaultPoolAlreadyDefined;
  auto *made = new Pool(*properties);
  if (pool == nullptr)
    tracer().default_pool = made;
  else
    *pool = made;
  return roctracer::kSuccess;
}
FAKE_EXPORT int roctracer_open_pool(const roctracer::PoolProperties *properties) {
  FAULT(roctracer_open_pool);
  if (tracer().default_pool != nullptr)
    return roctracer::kErrorDefaultPoolAlreadyDefined;
  tracer().default_pool = new Pool(*properties);
  return roctracer::kSuccess;
}
FAKE_EXPORT int roctracer_close_pool_expl(void *pool) {
  FAULT(roctracer_close_pool_expl);
  return close_pool(pool == nullptr ? tracer().default_pool.load() : static_cast<Pool *>(pool));
}
FAKE_EXPORT int roctracer_close_pool() {
  FAULT(roctracer_close_pool);
  return close_pool(tracer().default_pool);
}

FAKE_EXPORT int roctracer_enable_domain_activity_expl(uint32_t domain, void *pool) {
  FAULT(roctracer_enable_domain_activity_expl);
  return enable_activity(domain, pool);
}
FAKE_EXPORT int roctracer_enable_domain_activity(uint32_t domain) {
  FAULT(roctracer_enable_domain_activity);
  return enable_activity(domain, nullptr);
}
FAKE_EXPORT int roctracer_enable_op_activity_expl(uint32_t domain, uint32_t, void *pool) {
  FAULT(roctracer_enable_op_activity_expl);
  return enable_activity(domain, pool);
}
FAKE_EXPORT int roctracer_enable_op_activity(uint32_t domain, uint32_t) {
  FAULT(roctracer_enable_op_activity);
  return enable_activity(domain, nullptr);
}
FAKE_EXPORT int roctracer_disable_domain_activity(uint32_t) {
  FAULT(roctracer_disable_domain_activity);
  tracer().pool_of_activity = nullptr;
  return roctracer::kSuccess;
}
FAKE_EXPORT int roctracer_disable_op_activity(uint32_t, uint32_t) {
  FAULT(roctracer_disable_op_activity);
  tracer().pool_of_activity = nullptr;
  return roctracer::kSuccess;
}

FAKE_EXPORT int roctracer_flush_activity_expl(void *pool) {
  FAULT(roctracer_flush_activity_expl);
  return flush_pool(pool);
}
FAKE_EXPORT int roctracer_flush_activity() {
  FAULT(roctracer_flush_activity);
  return flush_pool(nullptr);
}
FAKE_EXPORT int roctracer_next_record(const roctracer::Record *record,
                                      const roctracer::Record **next) {
  FAULT(roctracer_next_record);
  *next = record + 1;
  return roctracer::kSuccess;
}
FAKE_EXPORT int roctracer_get_timestamp(uint64_t *ns) {
  FAULT(roctracer_get_timestamp);
  *ns = clock_ns();
  return roctracer::kSuccess;
}
FAKE_EXPORT int roctracer_activity_push_external_correlation_id(uint64_t) {
  FAULT(roctracer_activity_push_external_correlation_id);
  return roctracer::kSuccess;
}
FAKE_EXPORT int roctracer_activity_pop_external_correlation_id(uint64_t *last) {
  FAULT(roctracer_activity_pop_external_correlation_id);
  if (last != nullptr)
    *last = 0;
  return roctracer::kSuccess;
}
FAKE_EXPORT void roctracer_start() { tracer().is_started = true; }
FAKE_EXPORT void roctracer_stop() { tracer().is_started = false; }
