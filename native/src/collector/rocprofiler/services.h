// What is asked of rocprofiler-sdk, which hears it once in the life of a process.
#pragma once

#include <string>

#include "driver/rocprofiler/rocprofiler_library.h"

namespace proton {

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
