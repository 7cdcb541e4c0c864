// Samples hardware counters of the devices that the program uses, in bursts, on one thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "collector/cupti/counters/counter_facts.h"
#include "collector/cupti/counters/decode_thread.h"
#include "collector/cupti/counters/evaluator.h"
#include "collector/cupti/counters/pm_device.h"
#include "collector/gpu/devices/clock_pairs.h"
#include "collector/gpu/launches/context_list.h"
#include "driver/cuda/cuda_driver.h"
#include "record/counter_burst.h"
#include "record/record_sink.h"

namespace proton {

/// Whatever fails: the program goes on without counters, and the facts say why. Decoding is what
/// costs, so bursts are short and pauses long, and a thread of lowest priority does it.
///
/// Launches are held while counters are switched, as for samples of program counters: see
/// LaunchHold.
class CounterSampler {
public:
  CounterSampler(RecordSink &sink, const ContextList &contexts)
      : sink_(sink), contexts_(contexts) {}

  /// The library and the driver outlive the sampling. Times of activity records have to be the
  /// vendor's, as those of samples are.
  void start(const CuptiLibrary &library, const CudaDriver &driver, CounterOptions options);
  /// Ends a burst early, waits for its values for some seconds at most, and switches counters off.
  /// Does nothing unless it was started.
  void stop() noexcept;
  /// Called in a forked child, where there are no threads to be stopped.
  static void forget_after_fork() noexcept { Evaluator::forget_after_fork(); }
  CounterFacts facts() const; ///< [any thread]

private:
  // On the sampling thread.

  void run() noexcept;
  /// What does not change while it runs. False: this library does not sample.
  bool prepare() noexcept;
  /// Readies the library for counters. False: it is refused, or may be tried again.
  bool initialize();
  /// There will be no counters.
  void give_up(const char *why);
  /// Opens devices on which something was launched lately.
  void find_devices();
  /// False: it may be tried again.
  bool open(int32_t device);
  /// One burst of the next device.
  void take_burst();
  /// Calls it while no launch is open. False: that did not come to be, or a graph is captured.
  template <typename Switch> bool switch_counters(uint32_t limit_ms, Switch call);
  /// False: it could not be stopped, and is given up.
  bool stop(PmDevice &device, cupti::Result &result);
  void disable_all() noexcept;
  std::optional<PmSamples> sample(PmDevice &device);
  void deliver(const PmDevice &device, const PmSamples &samples);
  void refuse(const char *why);
  void lose_burst(PmDevice &device, const std::string &why);
  void lose_burst(PmDevice &device, const char *call, cupti::Result result);
  void give_up_device(PmDevice &device);
  void note(const PmSamples &samples);
  void note_costs(const PmSamples &samples);
  /// False once the sampling is to end.
  bool wait(int64_t pause_ns);
  /// `spent_ns`: the thread's processor time for bursts, `elapsed_ns`: time since the start.
  int64_t next_pause_ns(int64_t spent_ns, int64_t elapsed_ns) const;
  int64_t thread_ns() const; ///< processor time of both threads
  int64_t used_ns() const;   ///< and of the process that evaluates

  RecordSink &sink_;
  const ContextList &contexts_;
  const CuptiLibrary *library_ = nullptr;
  const CudaDriver *driver_ = nullptr;
  CounterOptions options_;

  std::optional<std::thread> thread_; ///< [starting thread]
  std::atomic<int64_t> end_by_ns_{0}; ///< no values are waited for after it

  // The sampling thread's own.
  std::optional<CuptiPmSampling> cupti_;
  std::shared_ptr<const std::vector<std::string>> metrics_; ///< of all devices; null: none yet
  bool is_initialized_ = false;
  ClockPairs clock_;
  std::optional<DecodeThread> decoder_;
  std::optional<Evaluator> evaluator_;
  std::vector<std::unique_ptr<PmDevice>> devices_;
  std::unique_ptr<PmDevice> scheduled_;  ///< waits for a moment at which it can be switched on
  std::map<int32_t, uint32_t> failures_; ///< in a row
  std::set<int32_t> known_;              ///< opened or refused
  std::set<void *> looked_at_;           ///< contexts
  size_t turn_ = 0;
  bool is_told_ = false; ///< that this program evaluates samples itself

  mutable std::mutex mutex_; ///< of what follows
  std::condition_variable wake_;
  bool is_ending_ = false;
  CounterFacts facts_;
};

} // namespace proton
