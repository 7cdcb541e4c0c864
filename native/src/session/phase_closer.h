// Phases that are over: written and freed while the program runs.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "session/writer_thread.h"

namespace proton {

/// What happens to a phase that is over and complete.
struct ClosingPlan {
  std::string path;        ///< absolute, without suffix
  bool has_trees = false;  ///< its tree is written as NAME.part_N.proton
  bool frees = false;      ///< the phase is freed; its timeline's files get their names
  int64_t interval_ns = 0; ///< the phase advances by itself so often; 0: it does not
};

struct PhaseCopy;
class Session;

/// One per session, which it keeps until that is removed. Asks for phases that are complete as long
/// as some are over, and for events that no full batch has brought, on the writer thread.
class PhaseCloser : public WriterClient, public std::enable_shared_from_this<PhaseCloser> {
public:
  /// So many complete phases may wait until `advance_phase` waits for them.
  static constexpr size_t kMostBehind = 64;

  /// Throws Error(kUnavailable).
  static std::shared_ptr<PhaseCloser> open(std::shared_ptr<Session> session, ClosingPlan plan);
  PhaseCloser(std::shared_ptr<Session> session, ClosingPlan plan);

  /// One more phase is over. [aggregator's lock held]
  void phase_over() noexcept;
  /// One of them was cleared instead. [aggregator's lock held]
  void phase_cleared() noexcept { --over_; }
  /// Closes what is complete. False: not until the deadline. [not the writer thread, no lock held]
  bool settle(int64_t deadline_ns);
  /// A phase that waited for that was joined. [aggregator's lock held]
  void joined() noexcept;
  /// How many phases were closed. [any thread]
  uint64_t closed() const { return closed_.load(); }
  /// Waits until more than `before` are closed, a second at most. [as `settle`]
  void wait_for_room(uint64_t before);
  /// No more is closed. [as `settle`]
  void close();

  /// Phases whose trees were written since the last call.
  std::vector<uint32_t> take_written();
  uint64_t waits() const { return waits_.load(); }
  /// What failed first; empty: nothing did.
  std::string error();

  void tick(int64_t now_ns) noexcept override;

private:
  void close_phases();
  void write(const PhaseCopy &copy);
  void note_written(uint32_t phase);
  ///   is_written: the file is there all the same.
  void fail(const std::string &message, bool is_written = false) noexcept;

  const std::shared_ptr<Session> session_;
  const ClosingPlan plan_;
  std::atomic<bool> is_over_{false};
  std::atomic<uint64_t> over_{0}; ///< phases that are over and not closed
  std::atomic<uint64_t> closed_{0};
  std::atomic<uint64_t> waits_{0};
  int64_t advance_ns_ = 0;   ///< when the phase advances next; of the writer thread
  int64_t hand_over_ns_ = 0; ///< when events are handed over next; of the writer thread
  std::mutex mutex_;
  std::condition_variable has_closed_;
  // The mutex's:
  std::vector<uint32_t> written_;
  std::string error_;
};

} // namespace proton
