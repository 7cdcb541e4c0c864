// How long devices ran each kernel, wherever it was launched.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "record/record.h"

namespace proton {

/// The whole that shares of call paths are parts of. Not synchronised: the aggregator's lock
/// guards it.
class KernelTimes {
public:
  struct Time {
    int64_t window_ns = 0; ///< since the newest `begin_window`
    int64_t ever_ns = 0;   ///< since `start`
  };

  void start();
  void stop();
  bool is_on() const { return is_on_; }
  void begin_window();
  void add(const KernelRecord &record);
  /// By the name that the device's tools know.
  Time find(std::string_view raw_name) const;

  /// That name of the kernel of a record.
  static std::string_view raw_name(const KernelRecord &record);

private:
  static constexpr size_t kMostKnown = size_t{1} << 16;
  Time &entry(const KernelRecord &record);

  bool is_on_ = false;
  std::map<std::string, Time, std::less<>> times_; ///< addresses stay
  std::unordered_map<uint64_t, Time *> known_;     ///< by identity of a record
};

} // namespace proton
