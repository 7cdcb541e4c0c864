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

#include "collector/cupti/counters/pm_device.h"
#include "collector/cupti/cupti_options.h"
#include "collector/gpu/launches/launch_log.h"
#include "driver/cuda/cuda_driver.h"
#include "record/record.h"
#include "record/record_sink.h"

namespace proton {

// The process that samples counters, as the recorded program sees it.

/// While libcupti switches counters, decodes or evaluates, launches of its process stand still, so
/// another process does all of it. Whoever started that one gave us an end of its socket. At most
/// one object in a process.
class SamplingProcess {
public:
  /// Takes over the socket, on whose other end is serve_counter_samples.
  SamplingProcess(const CounterOptions &options, std::string library, int socket);
  ~SamplingProcess(); ///< the other process ends with its socket
  SamplingProcess(const SamplingProcess &) = delete;
  SamplingProcess &operator=(const SamplingProcess &) = delete;

  // On one thread. `uuid` is that of a device. They throw Error(kUnavailable) that says why not.

  /// Switches counters on: the first of the sets that fits. Returns its metrics.
  CounterSamples open(const std::string &uuid, const std::vector<std::vector<std::string>> &sets);
  /// Takes one burst of an open device; times are CLOCK_MONOTONIC.
  CounterSamples sample(const std::string &uuid, const std::vector<std::string> &metrics);
  /// False: it has died.
  bool is_running() const { return is_running_; }
  /// Its processor time, as far as it said.
  int64_t used_ns() const { return used_ns_; }

  /// There will be no more requests: ends a burst early, whose samples are waited for until
  /// `end_by_ns` of CLOCK_MONOTONIC, and anything else at once. [any thread]
  void finish(int64_t end_by_ns) noexcept;
  /// Closes in a forked child what belongs to the parent.
  static void forget_after_fork() noexcept;

private:
  CounterSamples request(const std::string &uuid, const std::vector<std::vector<std::string>> &sets,
                         bool is_opening);
  [[noreturn]] void fail(const char *why);
  /// Sends (`is_out`) or receives all of it, or fails.
  void transfer(void *data, size_t bytes, bool is_out);
  template <typename T> void receive(std::vector<T> &values, size_t count);

  inline static std::atomic<int> open_socket_{-1}; ///< of the one object
  const CounterOptions options_;
  const std::string library_;
  const int socket_;
  bool is_running_ = true;
  std::atomic<bool> is_in_burst_{false};
  std::atomic<int64_t> end_by_ns_;
  int64_t deadline_ns_ = 0; ///< of the present request
  int64_t used_ns_ = 0;
};

/// A process of its own counts (SamplingProcess), so the program's launches never wait for it; the
/// thread here says when. Whatever fails: the program goes on without counters, and the facts say
/// why. Decoding costs processor time, so bursts are short and pauses long.
class CounterSampler {
public:
  CounterSampler(RecordSink &sink, const ContextList &contexts)
      : sink_(sink), contexts_(contexts) {}

  /// The driver outlives the sampling; `library` is the file of libcupti. Times of activity records
  /// have to be the vendor's, as those of samples are.
  /// Takes over `socket`, an end of that of the process that samples.
  void start(const std::string &library, const CudaDriver &driver, CounterOptions options,
             int socket);
  /// Ends a burst early, waits for its samples for some seconds at most, and closes the socket.
  /// Does nothing unless it was started.
  void stop() noexcept;
  /// Called in a forked child, where there are no threads to be stopped.
  static void forget_after_fork() noexcept { SamplingProcess::forget_after_fork(); }
  CounterFacts facts() const; ///< [any thread]

private:
  struct Device {
    int32_t ordinal = 0; ///< the driver's
    std::string uuid;
    uint32_t failures = 0; ///< bursts, one after the other
  };

  // On the sampling thread.

  void run() noexcept;
  void sample_until_stopped();
  /// Opens devices on which something was launched lately.
  void find_devices();
  /// False: it may be tried again.
  bool open(int32_t ordinal);
  /// One burst of the next device.
  void take_burst();
  void deliver(const Device &device, CounterSamples samples);
  void refuse(const char *why);
  void lose_burst(size_t device, const char *why);
  void note(const CounterSamples &samples);
  void note_costs();
  /// False once the sampling is to end.
  bool wait(int64_t pause_ns);
  bool is_ending() const;
  /// `spent_ns`: processor time for bursts, `elapsed_ns`: time since the start.
  int64_t next_pause_ns(int64_t spent_ns, int64_t elapsed_ns) const;
  int64_t used_ns() const; ///< processor time of the thread and of the process

  RecordSink &sink_;
  const ContextList &contexts_;
  const CudaDriver *driver_ = nullptr;
  CounterOptions options_;

  std::optional<std::thread> thread_;      ///< [starting thread]
  std::optional<SamplingProcess> process_; ///< as long as the thread; `finish` is any thread's

  // The sampling thread's own.
  std::shared_ptr<const std::vector<std::string>> metrics_; ///< of all devices; null: none yet
  std::vector<Device> devices_;
  std::set<int32_t> known_;    ///< opened or refused
  std::set<void *> looked_at_; ///< contexts
  size_t turn_ = 0;

  mutable std::mutex mutex_; ///< of what follows
  std::condition_variable wake_;
  bool is_ending_ = false;
  CounterFacts facts_;
};

} // namespace proton
