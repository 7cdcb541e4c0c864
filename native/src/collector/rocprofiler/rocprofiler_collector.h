// The collector of AMD GPUs: kernels, copies, graphs and ranges through rocprofiler-sdk.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "collector/collector.h"
#include "collector/hip/call_reader.h"
#include "collector/hip/hip_devices.h"
#include "collector/hip/hip_options.h"
#include "collector/hip/hip_records.h"
#include "driver/rocprofiler/rocprofiler_abi.h"
#include "driver/rocprofiler/rocprofiler_library.h"
#include "record/record_sink.h"

namespace proton {

class RocprofilerCollector : public Collector {
public:
  RocprofilerCollector(RecordSink &sink, HipOptions options)
      : sink_(sink), options_(std::move(options)) {}
  ~RocprofilerCollector() override;
  RocprofilerCollector(const RocprofilerCollector &) = delete;
  RocprofilerCollector &operator=(const RocprofilerCollector &) = delete;

  /// The first start of a process registers with the library, which must be before HIP starts.
  void start() override;
  void flush() override;
  /// The library goes on listening, and what it tells is left aside, but for graphs.
  void stop() override;
  /// Known after the first start.
  HipFacts facts() const;

private:
  RecordSink &sink_;
  HipOptions options_;
  bool is_running_ = false;
};

// Reads the buffers of rocprofiler-sdk.

// GPUs as rocprofiler-sdk knows them, and the ordinals that HIP gives them.

class Agents {
public:
  /// Asks for the GPUs of the machine, before records come. Throws Error(kUnavailable).
  void list(const RocprofilerLibrary &library);
  /// HIP ordinal of a GPU; -1: unknown, or hidden from HIP. HIP is asked at the first call, when
  /// work of it has ended. [completing thread, one at a time]
  int ordinal(uint64_t agent, const HipDevices &devices);

private:
  struct Gpu {
    uint64_t handle;
    int order; ///< among the GPUs of the machine
    GpuIdentity identity;
    int ordinal = -1;
  };
  static rocprofiler::Status take(int version, const void **agents, size_t count,
                                  void *self) noexcept;
  void map(const HipDevices &devices);

  std::vector<Gpu> gpus_; ///< by order
  bool is_mapped_ = false;
};

// Kernels by the numbers that rocprofiler-sdk gives them when their code is loaded.

struct KernelSymbol {
  std::string name; ///< without ".kd"
  uint32_t registers = 0;
};

/// Numbers are not used again, and their symbols stay: records come after code is unloaded.
class KernelSymbols {
public:
  /// Code was loaded. [any thread] locks
  void add(const rocprofiler::KernelSymbolData &symbol);
  /// Null where the library did not tell of it. [any thread] locks
  const KernelSymbol *find(uint64_t kernel) const;

private:
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, std::unique_ptr<const KernelSymbol>> symbols_;
};

class RocprofilerRecords {
public:
  RocprofilerRecords(HipRecords &records, const KernelSymbols &symbols)
      : records_(records), symbols_(symbols) {}

  /// Before records come.
  void set_devices(const HipDevices *devices) { devices_ = devices; }
  Agents &agents() { return agents_; }
  /// `dropped` counts from the beginning of the process. [any thread] locks
  void read(std::span<rocprofiler::RecordHeader *> headers, uint64_t dropped) noexcept;

private:
  void read_dispatch(const rocprofiler::DispatchRecord &record, RecordBatch &batch);
  void read_copy(const rocprofiler::CopyRecord &record, RecordBatch &batch);

  HipRecords &records_;
  const KernelSymbols &symbols_;
  const HipDevices *devices_ = nullptr;
  // Under the lock of `records_`:
  Agents agents_;
  uint64_t dropped_before_ = 0; ///< as the library counts
};

// HIP calls as rocprofiler-sdk's callbacks carry them.

/// Calls to listen to: those that launch kernels, those that make and change graphs, and those
/// that copy or set memory if asked for.
std::vector<int> traced_operations(bool copies);
/// `payload` is that of a callback of kCallbackHipRuntimeApi.
HipApiCall read_hip_call(int operation, const void *payload) noexcept;
/// Whether a call that ended says that it failed.
bool has_failed(const void *payload) noexcept;

// What is asked of rocprofiler-sdk, which hears it once in the life of a process.

/// Where callbacks go; `user` is handed to each.
struct RocprofilerListener {
  rocprofiler::TracingCallback hip = nullptr;
  rocprofiler::TracingCallback marker = nullptr;
  rocprofiler::TracingCallback code_object = nullptr;
  rocprofiler::BufferCallback records = nullptr;
  rocprofiler::CorrelationRequest tag = nullptr;
  void *user = nullptr;
};

/// Contexts are started and never stopped: the library does not start one again reliably. Not
/// synchronised.
class RocprofilerServices {
public:
  /// Registers with the library, before HIP starts. A second call does nothing but look whether
  /// copies were asked for in time; where the first failed it fails again. Throws
  /// Error(kUnavailable).
  void configure(const RocprofilerLibrary &library, const RocprofilerListener &listener,
                 size_t buffer_bytes, bool copies);
  /// Throws Error(kUnavailable).
  void start();
  /// Has records handed over; false where that failed. [any thread]
  bool flush() const noexcept;
  size_t buffer_bytes() const { return buffer_bytes_; }

private:
  static rocprofiler::ConfigureResult *on_configure(uint32_t version, const char *release,
                                                    uint32_t priority,
                                                    rocprofiler::ClientId *client) noexcept;
  static int on_initialize(rocprofiler::ClientFinalize finalize, void *self) noexcept;
  void initialize();
  void configure_work();
  void make_buffer();

  const RocprofilerLibrary *library_ = nullptr;
  RocprofilerListener listener_;
  size_t buffer_bytes_ = 0;
  std::string error_;
  bool is_configured_ = false;
  bool is_initialized_ = false; ///< the library called us
  rocprofiler::Handle code_;    ///< code objects: on from the beginning
  rocprofiler::Handle work_;
  rocprofiler::Handle buffer_;
  bool has_copies_ = false;
  bool is_started_ = false;
};

} // namespace proton
