// The double of HIP from inside: its state, and the way to the profiler libraries.
#pragma once

#include <array>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "fault_table.h"
#include "machine.h"
#include "tracer.h"

namespace fake {

struct HeldRecord {
  Tracer *tracer;
  Activity activity;
  uint64_t external;
};

struct Device {
  std::array<std::atomic<Tracer *>, 2> tracers{};
  std::atomic<uint64_t> correlation{1};
  std::atomic<uint64_t> clock_ns{1'000'000};
  std::atomic<uint64_t> drop{0};
  std::atomic<bool> is_shuffled{std::getenv("FAKE_AMD_DISORDER") != nullptr};
  std::atomic<bool> hides_kernels{false};
  std::atomic<bool> has_started{false};
  std::atomic<bool> is_any_held{false};
  std::atomic<bool> is_backwards{std::getenv("FAKE_AMD_DISORDER") != nullptr};
  FaultTable faults{"FAKE_AMD_FAIL", true};
  const std::vector<Gpu> gpus = gpus_of_hip();

  std::mutex mutex; ///< of everything below
  std::map<std::string, Kernel> kernels;
  std::map<uint32_t, std::vector<HeldRecord>> held; ///< by device
};

Device &device();

/// The kernel of this name; loads its module if necessary.
Kernel kernel_of(const char *name);
const char *name_of(const void *function);
void emit(const Activity &activity);
/// Runs on the device and gives the record to the profiler libraries that want it.
void run_on_device(Activity &activity, uint64_t duration_ns);
/// Adds a node to the graph that the stream is captured into. Returns false if it is not captured.
bool capture(const Kernel &kernel);
/// The capture of a stream: null, or the graph.
void *capture_graph(const void *stream);

void *stream_handle(uint32_t number);
uint32_t stream_number(const void *handle);

/// One HIP call: enter on `begin`, exit on destruction.
class TracedCall {
public:
  explicit TracedCall(CallKind kind);
  ~TracedCall();
  TracedCall(const TracedCall &) = delete;
  TracedCall &operator=(const TracedCall &) = delete;
  void enter();

  HipCall call;

private:
  std::array<std::array<uint64_t, 2>, 2> kept_{};
  std::array<bool, 2> is_entered_{};
};

} // namespace fake
