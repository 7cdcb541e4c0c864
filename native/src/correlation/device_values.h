// Values that work of a graph leaves in host memory, one set per launch of the graph.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>

#include "calltree/metric_columns.h"

namespace proton {

/// A ring that a device appends to and the host takes from, in 64-bit words:
///   count     sets that the device appended, also those that found no room
///   taken     sets that the host is done with
///   capacity  entries of: number of the set + 1, then its values
/// A set for which there is no room is left out: its entry keeps another number. Launches of one
/// executable graph follow one another, so that sets come in the order of launches. The memory
/// stays for the life of the process, since a graph may run for as long. Not synchronised: the
/// aggregator's lock guards it.
class DeviceValues {
public:
  static constexpr uint32_t kMaxSize = 4096; ///< values of a set

  /// `words` is zeroed memory of `bytes(size)`.
  DeviceValues(uint64_t *words, uint32_t size, bool is_float, bool is_vector);
  /// Whether any ring exists: rings fill while no records of launches are read. [any thread]
  static bool exist() noexcept { return exist_.load(std::memory_order_relaxed); }
  static uint32_t capacity_of(uint32_t size);
  static size_t bytes(uint32_t size);

  uint64_t address() const { return reinterpret_cast<uint64_t>(words_); }
  uint32_t size() const { return size_; }
  uint32_t capacity() const { return capacity_; }

  /// Reads what has come, to make room.
  void pull();
  /// Takes the set of the oldest launch that has not got one; nullopt if it is lost.
  std::optional<MetricValue> take();
  /// Drops what has come: it belongs to launches that were not seen.
  void skip();

private:
  static constexpr size_t kHeaderWords = 2;
  std::optional<MetricValue> read(uint64_t number) const;
  static std::atomic<bool> exist_;

  uint64_t *words_;
  uint32_t size_;
  uint32_t capacity_;
  bool is_float_;
  bool is_vector_;       ///< also with one value
  uint64_t next_ = 0;    ///< set that is read next
  uint64_t overdue_ = 0; ///< sets that were to be taken before they came
  std::deque<std::optional<MetricValue>> came_;
};

} // namespace proton
