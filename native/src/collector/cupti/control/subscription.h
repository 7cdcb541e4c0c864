// What is switched on in CUPTI, and switched off again.
#pragma once

#include <functional>
#include <vector>

#include "collector/cupti/activity/activity_stream.h"
#include "collector/cupti/callbacks/callback_table.h"
#include "driver/cupti/cupti_library.h"

namespace proton {

/// A subscriber with its callbacks and activities. A step that fails undoes those before it.
class Subscription {
public:
  explicit Subscription(const CuptiLibrary &library) : library_(library) {}
  ~Subscription() { undo_all(); }
  Subscription(const Subscription &) = delete;
  Subscription &operator=(const Subscription &) = delete;

  /// Each throws Error(kUnavailable).
  void subscribe(CallbackTable &table);
  void enable(CallbackTable &table, CallbackSource &source);
  void enable(const RecordReader &reader);
  void set_flush_period(uint32_t period_ms);
  /// Throws if the library or the GPU cannot. CUPTI cannot switch it off again.
  void enable_hardware_trace();

  /// Switches activities off, then callbacks; returns how many of the calls failed.
  uint64_t disable_activities() noexcept;
  uint64_t unsubscribe() noexcept;

private:
  void undo_all() noexcept;

  const CuptiLibrary &library_;
  void *subscriber_ = nullptr;
  std::vector<int> kinds_;
  bool has_period_ = false;
};

} // namespace proton
