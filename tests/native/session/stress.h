// Threads that do everything a target does, so that sessions can come and go meanwhile. Each
// kernel's name spells the path on which it was launched, which a file can be checked against.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "aggregate/consumer/given_values.h"
#include "context/thread/host_range.h"
#include "context/thread/thread_state.h"
#include "session/session_registry.h"

namespace stress {

inline proton::SessionRegistry &sessions() { return proton::SessionRegistry::instance(); }
inline proton::RecordSink &sink() { return proton::Aggregator::instance(); }

/// What the threads did.
struct Totals {
  std::atomic<uint64_t> launches{0};
  std::atomic<uint64_t> kernels{0}; ///< completed with a valid time
  std::atomic<uint64_t> kernel_ns{0};
  std::atomic<uint64_t> failed{0};
  std::atomic<uint64_t> impossible{0}; ///< completed with an end before the start
  std::atomic<uint64_t> ops{0};
  std::atomic<uint64_t> op_ns{0};
  std::atomic<uint64_t> metrics{0};
};

/// One thread's scopes and launches. `leads` gives it scopes of its own; without, it stands where
/// the starting thread stands.
class Worker {
public:
  Worker(Totals &totals, uint32_t number, bool leads)
      : totals_(totals), number_(number), leads_(leads) {}

  void run(uint32_t iterations) {
    for (uint32_t i = 0; i < iterations; ++i) {
      serial_ = i;
      iterate();
    }
    complete_pending();
  }

private:
  // Names repeat after a while, so that caches hit, and differ between threads and positions.
  std::string name(const char *what) const {
    return "w" + std::to_string(number_) + what + std::to_string(serial_ % 97);
  }

  void iterate() {
    uint32_t opened = leads_ ? 1 + serial_ % 3 : 0;
    for (uint32_t i = 0; i < opened; ++i)
      open(name(("." + std::to_string(i) + ".").c_str()));
    bool has_state = leads_ && serial_ % 4 == 0;
    if (has_state) {
      path_.push_back(name(".state."));
      proton::this_thread().stack.enter_state(path_.back(), proton::session_state());
    }
    run_op();
    launch();
    if (serial_ % 5 == 0)
      add_metric();
    if (has_state) {
      proton::this_thread().stack.exit_state(proton::session_state());
      path_.pop_back();
    }
    for (uint32_t i = 0; i < opened; ++i)
      close();
    if (pending_.size() > serial_ % 64)
      complete_pending();
  }

  void open(std::string scope) {
    proton::SessionState now = proton::session_state();
    path_.push_back(std::move(scope));
    proton::HashedName hashed = proton::hashed(path_.back());
    if (now.active)
      proton::open_scope(hashed, proton::FrameKind::kScope, now);
    else
      proton::this_thread().stack.push_noop(hashed, proton::FrameKind::kScope);
  }

  void close() {
    proton::close_top(proton::session_state());
    path_.pop_back();
  }

  void run_op() {
    path_.push_back(leads_ ? name(".op.") : "follow.op");
    proton::OpenRange range = proton::enter_range(path_.back(), proton::FrameKind::kOp);
    launch();
    proton::exit_range(range, proton::RangeKind::kOp, {0, 5, 3}, -1);
    totals_.ops += range.is_open() ? 1 : 0;
    totals_.op_ns += range.is_open() ? 3 : 0;
    path_.pop_back();
  }

  void launch() {
    uint64_t id = proton::next_correlation_id();
    sink().launched(id);
    ++totals_.launches;
    if (id % 7 == 0) {
      sink().failed(id);
      ++totals_.failed;
      return;
    }
    std::string kernel = leads_ ? "k:" : "follow:";
    for (const std::string &frame : path_)
      kernel += frame + "/";
    pending_.push_back({id, std::move(kernel)});
  }

  void complete_pending() {
    std::vector<proton::KernelRecord> records;
    for (const Pending &pending : pending_) {
      proton::KernelRecord record;
      record.correlation_id = pending.id;
      record.name = pending.kernel.c_str();
      record.start_ns = 100;
      record.end_ns = pending.id % 11 == 0 ? 99 : 107;
      records.push_back(record);
      totals_.impossible += pending.id % 11 == 0 ? 1 : 0;
      totals_.kernels += pending.id % 11 == 0 ? 0 : 1;
      totals_.kernel_ns += pending.id % 11 == 0 ? 0 : 7;
    }
    sink().complete(records);
    pending_.clear();
  }

  void add_metric() {
    using proton::Aggregation, proton::MetricName;
    proton::UserMetric metric(MetricName::of("flops", Aggregation::kInclusive), int64_t{2});
    proton::Capture at = proton::capture_current();
    if (at.epoch == 0)
      return;
    proton::give_values_or_capture(at, {metric});
    totals_.metrics += 2;
  }

  struct Pending {
    uint64_t id;
    std::string kernel;
  };
  Totals &totals_;
  uint32_t number_;
  bool leads_;
  uint32_t serial_ = 0;
  std::vector<std::string> path_;
  std::vector<Pending> pending_;
};

/// Workers on threads of their own; every fourth one follows the starting thread.
class Crew {
public:
  Crew(Totals &totals, uint32_t threads, uint32_t iterations) : running_(threads) {
    for (uint32_t number = 0; number < threads; ++number)
      threads_.emplace_back([this, &totals, number, iterations] {
        Worker(totals, number, number % 4 != 3).run(iterations);
        --running_;
      });
  }
  bool works() const { return running_ > 0; }
  void join() {
    for (std::thread &thread : threads_)
      thread.join();
    threads_.clear();
  }

private:
  std::atomic<uint32_t> running_;
  std::vector<std::thread> threads_;
};

} // namespace stress
