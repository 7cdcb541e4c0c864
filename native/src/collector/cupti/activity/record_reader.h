// Turns activity records of CUPTI into ours; one reader per kind of record.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "collector/cupti/callbacks/launch_source.h"
#include "collector/gpu/devices/clock_pairs.h"
#include "collector/gpu/devices/device_facts.h"
#include "collector/gpu/launches/launch_log.h"
#include "collector/gpu/records/delivery.h"
#include "collector/gpu/work/kernel_table.h"
#include "driver/cupti/cupti_library.h"

namespace proton {

// Turns the times of activity records into CLOCK_MONOTONIC.

/// If the library can ask for the host's time, its times are ours already. Otherwise pairs of both
/// clocks are noted now and then, and times between two of them are interpolated.
class Timebase {
public:
  /// Begins in one of the two ways. Call before activities are enabled.
  void start(const CuptiLibrary &library, bool vendor_clock);
  /// Restores the library's own clock for its next user.
  void stop(const CuptiLibrary &library) noexcept;
  bool converts() const { return converts_; }

  /// How much the library's clock gained on CLOCK_MONOTONIC since `start`, until the newest pair or
  /// `stop`. [any thread]
  int64_t drift_ns() const noexcept { return pairs_.drift_ns(); }

  /// Notes a pair if the last one is old. [completing thread, one at a time]
  void observe() noexcept {
    if (converts_)
      pairs_.observe();
  }
  int64_t monotonic(uint64_t vendor_ns) const noexcept {
    auto time_ns = static_cast<int64_t>(vendor_ns);
    return converts_ ? pairs_.monotonic(time_ns) : time_ns;
  }

private:
  bool converts_ = true;
  ClockPairs pairs_;
};

/// What readers need to know besides the record.
struct ReadingContext {
  const CorrelationIds &ids;
  const LaunchLog &launches;
  const Timebase &timebase;
  DeviceFacts &devices;
};

class RecordReader {
public:
  virtual ~RecordReader() = default;
  /// Kinds to enable, which this reader reads.
  virtual std::vector<int> kinds() const = 0;
  /// [completing thread, one at a time]
  virtual void read(const void *record, RecordBatch &batch) noexcept = 0;
  /// Called when no batch holds a record: what records pointed to may be freed.
  virtual void between_buffers() noexcept {}
};

/// kConcurrentKernel.
class KernelReader : public RecordReader {
public:
  explicit KernelReader(ReadingContext context) : context_(context) {}
  std::vector<int> kinds() const override { return {cupti::kKindConcurrentKernel}; }
  void read(const void *record, RecordBatch &batch) noexcept override;
  void between_buffers() noexcept override { kernels_.trim(); }

private:
  ReadingContext context_;
  KernelTable kernels_;
};

/// kMemcpy, kMemcpyPeer and kMemset.
class CopyReader : public RecordReader {
public:
  explicit CopyReader(ReadingContext context) : context_(context) {}
  std::vector<int> kinds() const override {
    return {cupti::kKindMemcpy, cupti::kKindMemcpyPeer, cupti::kKindMemset};
  }
  void read(const void *record, RecordBatch &batch) noexcept override;

private:
  ReadingContext context_;
};

/// kGraphTrace: one record per launch of a graph, instead of one per node.
class GraphReader : public RecordReader {
public:
  explicit GraphReader(ReadingContext context) : context_(context) {}
  std::vector<int> kinds() const override { return {cupti::kKindGraphTrace}; }
  void read(const void *record, RecordBatch &batch) noexcept override;

private:
  ReadingContext context_;
};

/// Kind -> reader. Filled before the first session: records of one that ended may still be read
/// when the next one starts.
class ReaderTable {
public:
  void add(RecordReader &reader);
  void between_buffers() noexcept {
    for (RecordReader *reader : readers_)
      if (reader)
        reader->between_buffers();
  }
  RecordReader *find(int kind) const noexcept {
    auto row = static_cast<size_t>(kind);
    return row < readers_.size() ? readers_[row] : nullptr;
  }

private:
  std::array<RecordReader *, 64> readers_{};
};

} // namespace proton
