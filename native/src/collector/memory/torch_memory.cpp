#include "collector/memory/torch_memory.h"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "context/thread/current.h"
#include "context/thread/self_cost.h"
#include "driver/import_slots.h"
#include "record/device.h"
#include "support/tick_clock.h"

namespace proton {
namespace {

/// c10::Device.
struct TorchDevice {
  int8_t type = 0;
  int8_t index = 0;
};

// void c10::reportMemoryUsageToProfiler(void *address, int64_t bytes, size_t total_allocated,
//                                       size_t total_reserved, c10::Device)
// `bytes` is negative for what is freed; all are sizes as the allocator counts them.
constexpr const char *kReport = "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE";
using Report = void (*)(void *, int64_t, size_t, size_t, TorchDevice);
// void c10::reportOutOfMemoryToProfiler(int64_t bytes, size_t total_allocated,
//                                       size_t total_reserved, c10::Device)
constexpr const char *kReportFailure = "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE";
using ReportFailure = void (*)(int64_t, size_t, size_t, TorchDevice);

struct Library {
  const char *file_name;
  const char *device_kind;
};
constexpr std::array kLibraries = {Library{"libc10_cuda.so", "CUDA"},
                                   Library{"libc10_hip.so", "HIP"}};

constexpr size_t kMostDevices = 128;

std::atomic<RecordSink *> g_sink{nullptr};
std::atomic<Report> g_report{nullptr};
std::atomic<ReportFailure> g_report_failure{nullptr};
std::atomic<const char *> g_device_kind{nullptr};
std::array<std::atomic<int32_t>, kMostDevices> g_devices; ///< 1 + index into the DeviceTable

int32_t device_of(TorchDevice device) {
  auto &known = g_devices[static_cast<size_t>(static_cast<uint8_t>(device.index)) % kMostDevices];
  if (int32_t index = known.load(std::memory_order_relaxed))
    return index - 1;
  const int32_t index =
      DeviceTable::instance().find_or_add(g_device_kind.load(), int32_t{device.index});
  known.store(index + 1, std::memory_order_relaxed);
  return index;
}

/// The allocator's lock is held: nothing here may wait for the lock of the interpreter, whose
/// holder may wait for that of the allocator.
[[gnu::hot]] void note(MemoryChange change, void *address, int64_t bytes, size_t total,
                       TorchDevice device) noexcept {
  RecordSink *sink = g_sink.load(std::memory_order_acquire);
  if (!sink)
    return;
  const TimedCall call;
  const SessionState now = session_state();
  MemoryRecord record;
  record.change = change;
  if (change == MemoryChange::kFreed)
    record.at.epoch = now.active ? now.epoch : 0;
  else
    record.at = capture_allocation();
  record.address = reinterpret_cast<uintptr_t>(address);
  record.bytes = bytes;
  record.total_bytes = static_cast<int64_t>(total);
  if (now.wants_timeline)
    record.at_ns = TickClock::now_ns();
  try {
    record.device = device_of(device);
  } catch (...) { // no memory: it is counted as lost
    sink->dropped({"no memory for host records", 1});
    return;
  }
  sink->complete(record);
}

[[gnu::hot]] void on_report(void *address, int64_t bytes, size_t total, size_t reserved,
                            TorchDevice device) {
  if (bytes > 0)
    note(MemoryChange::kAllocated, address, bytes, total, device);
  else if (bytes < 0)
    note(MemoryChange::kFreed, address, -bytes, total, device);
  g_report.load(std::memory_order_acquire)(address, bytes, total, reserved, device);
}

void on_failure(int64_t bytes, size_t total, size_t reserved, TorchDevice device) {
  note(MemoryChange::kOutOfMemory, nullptr, bytes, total, device);
  g_report_failure.load(std::memory_order_acquire)(bytes, total, reserved, device);
}

const Library *loaded_library() {
  for (const Library &each : kLibraries)
    if (void *library = dlopen(each.file_name, RTLD_NOW | RTLD_NOLOAD)) {
      dlclose(library); // it stays loaded, by those that loaded it
      return &each;
    }
  return nullptr;
}

/// Has the library's reports come here. Once and for good: what another tool finds here later, it
/// goes on to call.
bool install(const Library &library) {
  ImportSlots reports = ImportSlots::find(library.file_name, kReport);
  ImportSlots failures = ImportSlots::find(library.file_name, kReportFailure);
  g_device_kind.store(library.device_kind);
  // Before a call can reach the replacement.
  g_report.store(reinterpret_cast<Report>(reports.target()));
  g_report_failure.store(reinterpret_cast<ReportFailure>(failures.target()));
  if (g_report_failure.load()) // else no error is known
    failures.replace(reinterpret_cast<ImportSlots::Function>(on_failure));
  return g_report.load() && reports.replace(reinterpret_cast<ImportSlots::Function>(on_report));
}

} // namespace

TorchMemory &TorchMemory::instance() {
  static TorchMemory *watch = new TorchMemory; // outlives threads of the target
  return *watch;
}

bool TorchMemory::is_loaded() { return loaded_library() != nullptr; }

bool TorchMemory::watch(RecordSink &sink) {
  const Library *library = loaded_library();
  if (!library)
    return false;
  static const bool is_installed = install(*library);
  if (is_installed)
    g_sink.store(&sink, std::memory_order_release);
  return is_installed;
}

void TorchMemory::unwatch() { g_sink.store(nullptr); }

} // namespace proton
