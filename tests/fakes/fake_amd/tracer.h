// The interface between the double of HIP and the doubles of profiler libraries.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "control.h"
#include "driver/hip/hip_abi.h"

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace fake {

namespace hip = proton::hip;

/// HIP calls that profiler libraries report.
enum class CallKind {
  kModuleLaunch,
  kLaunch,
  kExtModuleLaunch,
  kCooperative,
  kModuleCooperative,
  kLaunchExC,
  kDrvLaunchEx,
  kExtLaunch,
  kCopy,
  kSet,
  kBeginCapture,
  kEndCapture,
  kInstantiate,
  kGraphLaunch,
  kGraphUpdate,
  kGraphClone,
  kAddChild,
  kAddKernel,
  kGraphDestroy,
  kExecDestroy,
  kCount,
};

struct HipCall {
  CallKind kind = CallKind::kCount;
  uint64_t correlation = 0;
  int result = hip::kSuccess;
  void *function = nullptr;
  uint32_t grid[3] = {};
  uint32_t block[3] = {};
  uint32_t shared_bytes = 0;
  void *stream = nullptr;
  uint64_t bytes = 0;
  int copy_kind = 0;
  void *graph = nullptr;
  void *exec = nullptr;
  void **out = nullptr; ///< where the call writes a graph or an executable graph
  // What parameters point to.
  hip::LaunchConfig config{};
  hip::DriverLaunchConfig driver_config{};
  hip::KernelNodeParams node{};
  /// 16 bytes that each tracer keeps from enter to exit.
  uint64_t kept[2] = {};
};

struct Kernel {
  const char *name = nullptr; ///< interned; also its function handle
  uint64_t id = 0;            ///< by name, from 1
  uint64_t duration_ns = 0;
  uint32_t device = 0; ///< HIP's ordinal
  uint32_t stream = 0;
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {64, 1, 1};
  uint32_t shared_bytes = 0;
  uint32_t missing_items = 0; ///< that the last workgroup of x lacks
};

enum class ActivityKind { kKernel, kCopy, kSet };

struct Activity {
  ActivityKind kind = ActivityKind::kKernel;
  Kernel kernel;
  uint32_t gpu = 0; ///< of the machine, whatever the process may use
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint64_t correlation = 0;
  uint64_t bytes = 0;
  int copy_kind = 0;
  bool is_in_graph = false;
};

class Tracer {
public:
  virtual ~Tracer() = default;
  virtual bool wants(CallKind kind) = 0;
  virtual void enter(HipCall &call) = 0;
  virtual void exit(HipCall &call) = 0;
  /// [thread of the launch] Whether records are wanted; sets the 8 bytes to keep with this one.
  virtual bool dispatch(const Activity &activity, uint64_t &external) = 0;
  virtual void record(const Activity &activity, uint64_t external) = 0;
  /// The kernel's module was loaded.
  virtual void kernel_loaded(const Kernel &kernel) = 0;
  /// `operation` is proton::roctx::Operation.
  virtual void range(uint32_t operation, const char *message, uint64_t id) = 0;
  virtual void drain() = 0;
  virtual uint64_t waiting() = 0;
};

// What the profiler libraries use of the double of HIP.
/// At most two; for the life of the process.
__attribute__((visibility("default"))) void add_tracer(Tracer *tracer);
/// Counts a call of an entry point; returns the code of its failure, or 0.
__attribute__((visibility("default"))) int called(const char *name, std::atomic<uint64_t> &calls);
__attribute__((visibility("default"))) void know(const char *name, std::atomic<uint64_t> *calls);
__attribute__((visibility("default"))) uint64_t clock_ns();
__attribute__((visibility("default"))) uint64_t take_drop(); ///< 1 if the next record is lost
__attribute__((visibility("default"))) bool is_shuffled();
__attribute__((visibility("default"))) bool hides_kernels();
__attribute__((visibility("default"))) bool runtime_has_started();
/// Kernels that were loaded so far.
__attribute__((visibility("default"))) std::vector<Kernel> loaded_kernels();

class EntryPoint {
public:
  explicit EntryPoint(const char *name) : name_(name) { know(name, &calls_); }
  int called() { return fake::called(name_, calls_); }

private:
  const char *name_;
  std::atomic<uint64_t> calls_{0};
};

} // namespace fake

#define FAULT(name)                                                                                \
  static fake::EntryPoint entry_point(#name);                                                      \
  if (const int code = entry_point.called(); code != 0)                                            \
  return code
