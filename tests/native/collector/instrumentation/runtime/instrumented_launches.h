// A runtime on the double of libcuda, and launches whose kernels a test plays.
#pragma once

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "collector/instrumentation/runtime/runtime.h"
#include "context/thread/current.h"
#include "record/timeline_record.h"

extern "C" {
size_t fake_cuda_allocations();
size_t fake_cuda_handles();
uint64_t fake_cuda_anchor_calls();
void fake_cuda_set_timer(uint64_t timer_ns, double faster);
void fake_cuda_silence_timer(bool is_silent);
uint64_t fake_cuda_timer_at(int64_t monotonic_ns);
uint64_t fake_cuda_calls(const char *name);
uint64_t fake_cuda_synchronisations();
void fake_cuda_set_context(uint32_t id);
void fake_cuda_plan_fault(const char *name, int code, uint64_t skip);
bool fake_cuda_fault_waits();
unsigned long long fake_cuda_begin_capture(void *stream);
bool fake_cuda_end_capture();
void fake_cuda_replay(unsigned long long id);
void fake_cuda_hold(void *stream);
void fake_cuda_let_go(void *stream);
void fake_cuda_enqueue(void *stream, void (*work)(void *), void *argument);
void *fake_cuda_newest_stream();
}

namespace launches {

using namespace proton;

/// A sink that keeps what it gets.
class Sink : public RecordSink {
public:
  struct Cycles {
    std::string kernel;
    Capture at;
    int32_t device;
    KernelTotals totals;
    std::vector<ScopeTotals> scopes;
  };

  EpochId launched(uint64_t) noexcept override { return 0; }
  EpochId launched(uint64_t, LaunchKind, uint32_t) noexcept override { return 0; }
  void launched_own(uint64_t, LaunchKind) noexcept override {}
  EpochId launched_at(uint64_t, int64_t) noexcept override { return 0; }
  uint64_t scoped() noexcept override { return ++scoped_launches; }
  void retracted(uint64_t) noexcept override {}
  void failed(uint64_t) noexcept override {}
  void complete(std::span<const KernelRecord>) noexcept override {}
  void complete(std::span<const CopyRecord>) noexcept override {}
  void complete(const CycleRecord &record) noexcept override {
    std::lock_guard lock(mutex);
    cycles.push_back({record.kernel,
                      record.at,
                      record.device_index,
                      *record.totals,
                      {record.scope_totals, record.scope_totals + record.scopes.size()}});
  }
  void complete(const TimelineRecord &record) noexcept override {
    std::lock_guard lock(mutex);
    timelines.push_back({record.kernel,
                         record.clock_hz,
                         {record.programs.begin(), record.programs.end()},
                         {record.instances.begin(), record.instances.end()},
                         record.left_out,
                         record.timer,
                         record.correlation_id});
  }
  bool has_timeline_room(const Capture &) noexcept override { return has_room; }
  proton::PendingLaunches pending(uint64_t, uint64_t) noexcept override { return {}; }
  void settled(const SettledRecord &) noexcept override {}
  void dropped(const DroppedRecord &record) noexcept override {
    std::lock_guard lock(mutex);
    lost += record.count;
  }
  GraphSink &graphs() noexcept override { std::abort(); }

  /// Sum over all records.
  uint64_t total(uint64_t KernelTotals::*field) {
    std::lock_guard lock(mutex);
    uint64_t all = 0;
    for (const Cycles &each : cycles)
      all += each.totals.*field;
    return all;
  }

  struct Timeline {
    std::string kernel;
    uint64_t clock_hz;
    std::vector<TimelineProgram> programs;
    std::vector<TimelineScope> instances;
    uint64_t left_out;
    TimerOffset timer;
    uint64_t correlation_id;
  };

  std::mutex mutex;
  std::vector<Cycles> cycles;
  std::vector<Timeline> timelines;
  uint64_t lost = 0;
  std::atomic<uint64_t> scoped_launches{0};
  bool has_room = true; ///< for timelines
};

inline constexpr uint32_t kWarps = 2;
inline constexpr uint32_t kSlots = 8;
inline constexpr uint32_t kScratchBytes = 256;

/// A kernel with scopes "load" and "dot" and two warps.
inline std::shared_ptr<InstrumentedKernel> make_kernel(const std::string &name,
                                                       uint32_t scratch_bytes = kScratchBytes) {
  auto kernel = std::make_shared<InstrumentedKernel>();
  kernel->name = name;
  kernel->scratch_bytes = scratch_bytes;
  kernel->warps = kWarps;
  kernel->scope_names = {"load", "dot"};
  kernel->finish();
  return kernel;
}

/// Writes what a launch writes: in each warp one instance of scope `scope` of `cycles`.
inline void play(cuda::DevicePointer buffer, uint32_t programs, uint32_t scope, uint32_t cycles,
                 uint32_t scratch_bytes = kScratchBytes) {
  for (uint32_t program = 0; program < programs; ++program) {
    auto *words = reinterpret_cast<uint32_t *>(buffer + uint64_t{program} * scratch_bytes);
    const uint32_t header[] = {kBlockPreamble, program, program % 7, kWarps * kSlots * 8};
    std::memcpy(words, header, sizeof header);
    std::memset(words + 4, 0, 24);
    for (uint32_t warp = 0; warp < kWarps; ++warp) {
      words[10 + warp] = 4;
      uint32_t *data = words + 10 + kWarps + warp * kSlots * 2;
      const uint32_t records[] = {scope << 23, 1000 + warp, 1u << 31 | scope << 23,
                                  1000 + warp + cycles};
      std::memcpy(data, records, sizeof records);
    }
  }
}

inline void *stream(uintptr_t number) { return reinterpret_cast<void *>(number << 4); }

/// One launch of a known function, as Triton makes it.
inline void launch(InstrumentationRuntime &runtime, uint64_t function, uint32_t programs,
                   uint32_t cycles, void *on = stream(1)) {
  cuda::DevicePointer buffer = runtime.allocate(size_t{programs} * kScratchBytes, on);
  play(buffer, programs, 1, cycles);
  runtime.launched(function, on);
}

/// What a launch writes when its stream gets to it.
struct Played {
  cuda::DevicePointer buffer;
  uint32_t programs;
  uint32_t cycles;
  bool has_run = false;

  static void run(void *self) {
    auto *played = static_cast<Played *>(self);
    play(played->buffer, played->programs, 1, played->cycles);
    played->has_run = true;
  }
};

/// Same as `launch` for a device that may be late. Keep the result until the stream's work is done.
inline std::unique_ptr<Played> launch_late(InstrumentationRuntime &runtime, uint64_t function,
                                           uint32_t programs, uint32_t cycles,
                                           void *on = stream(1)) {
  cuda::DevicePointer buffer = runtime.allocate(size_t{programs} * kScratchBytes, on);
  auto played = std::make_unique<Played>(Played{buffer, programs, cycles});
  fake_cuda_enqueue(on, &Played::run, played.get());
  runtime.launched(function, on);
  return played;
}

/// A session is active while it lives.
class Listening {
public:
  Listening() {
    SessionState now;
    now.epoch = 1;
    now.active = true;
    publish_session_state(now);
  }
  ~Listening() { publish_session_state({}); }
};

inline void listen_in_epoch(EpochId epoch) {
  SessionState now = session_state();
  now.epoch = epoch;
  now.active = true;
  publish_session_state(now);
}

} // namespace launches
