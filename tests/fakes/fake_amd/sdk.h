// The double of librocprofiler-sdk from inside: contexts, services and buffers.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "driver/rocprofiler/rocprofiler_abi.h"
#include "driver/rocprofiler/rocprofiler_library.h"
#include "record_blocks.h"
#include "tracer.h"

namespace fake {

namespace sdk = proton::rocprofiler;

inline constexpr uint64_t kCpuAgent = 7;
inline constexpr uint64_t kFirstGpuAgent = 70;

struct AnyRecord {
  uint32_t kind = 0;
  union {
    sdk::DispatchRecord dispatch;
    sdk::CopyRecord copy;
  };
};

struct Buffer {
  sdk::Handle context;
  sdk::Handle id;
  sdk::BufferCallback callback = nullptr;
  void *user = nullptr;
  std::atomic<uint64_t> dropped{0}; ///< since the beginning, as the library counts
  std::unique_ptr<RecordBlocks<AnyRecord>> blocks;

  void deliver(std::vector<AnyRecord> &records, uint64_t dropped_now);
};

struct Service {
  std::vector<bool> operations; ///< empty: all of them
  sdk::TracingCallback callback = nullptr;
  void *user = nullptr;

  bool has(int operation) const {
    return operations.empty() ||
           (operation >= 0 && static_cast<size_t>(operation) < operations.size() &&
            operations[static_cast<size_t>(operation)]);
  }
};

/// Constant after the configuration, except `is_active`.
struct Context {
  uint64_t id = 0;
  std::atomic<bool> is_active{false};
  bool is_valid = true;
  std::map<int, Service> services; ///< by CallbackKind
  std::map<int, Buffer *> buffers; ///< by BufferKind
  sdk::CorrelationRequest request = nullptr;
  void *request_user = nullptr;
};

class Sdk final : public Tracer {
public:
  bool wants(CallKind kind) override;
  void enter(HipCall &call) override;
  void exit(HipCall &call) override;
  bool dispatch(const Activity &activity, uint64_t &external) override;
  void record(const Activity &activity, uint64_t external) override;
  void kernel_loaded(const Kernel &kernel) override;
  void range(uint32_t operation, const char *message, uint64_t id) override;
  void drain() override;
  uint64_t waiting() override;

  int configure(sdk::Configure configure);
  /// The context, or null.
  Context *find(sdk::Handle handle);
  Buffer *find_buffer(sdk::Handle handle);

  enum class State { kNone, kConfiguring, kDone };
  std::atomic<State> state{State::kNone};
  std::vector<std::unique_ptr<Context>> contexts;
  std::vector<std::unique_ptr<Buffer>> buffers;
  bool sees_dispatches = true;

private:
  void tell(Context &context, const Service &service, sdk::CallbackRecord record,
            sdk::UserValue &user);
  void tell_kernel(Context &context, const Kernel &kernel);

  std::array<std::atomic<bool>, static_cast<size_t>(CallKind::kCount)> wanted_{};
  std::atomic<Context *> hip_context_{nullptr};
  friend void started(Sdk &self, Context &context);
  sdk::ConfigureResult result_{};
  sdk::ClientId client_{};
};

Sdk &the_sdk();
/// Applies a context's start or end.
void started(Sdk &self, Context &context);
uint64_t thread_number();

} // namespace fake
