// What a launching thread keeps between the entry and the exit of a driver call.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "context/python/python_lock.h"
#include "context/thread/current.h"
#include "context/thread/host_range.h"

namespace proton {

// The ranges of a vendor's marker library (NVTX, ROCTX) that a thread has open.

/// The name in "NAME, seq = N, op_id = N, ...": torch's emit_nvtx numbers every call of an
/// operator.
std::string_view name_of_range(std::string_view text) noexcept;

/// Used by its own thread only. Ranges past the limit are counted, but do not become scopes.
class MarkerRanges {
public:
  void push(const void *domain, std::string_view name);
  void pop(const void *domain) noexcept;
  /// The thread ended.
  void clear() noexcept {
    entries_.clear();
    beyond_ = 0;
  }

private:
  static constexpr size_t kMax = 4096;
  struct Entry {
    const void *domain;
    OpenRange range;
    bool is_over; ///< popped while a scope of ours, opened inside, is open
  };
  void close_innermost() noexcept;

  std::vector<Entry> entries_; ///< innermost last
  size_t beyond_ = 0;          ///< pushed when there was no room left
};

// Keeps threads of the target from beginning driver calls for a moment.

struct LaunchThread;

/// While one lives, no watched call begins: its thread waits at the entry, where it has no lock of
/// the driver yet. CUPTI needs that to switch PC sampling: it takes its own lock, then one of the
/// driver. A launch takes them in the other order, and both would wait for ever.
class LaunchHold {
public:
  /// Waits for open calls and for holds of other threads, not longer than `limit_ms`. A thread that
  /// holds may hold once more.
  explicit LaunchHold(uint32_t limit_ms);
  ~LaunchHold();
  LaunchHold(const LaunchHold &) = delete;
  LaunchHold &operator=(const LaunchHold &) = delete;

  /// Whether no other thread is in a watched call.
  bool is_complete() const { return is_complete_; }

  /// Read at the entry of a watched call, after its thread noted that it is inside.
  static bool is_set() noexcept { return is_set_.load(std::memory_order_relaxed); }
  /// Notes that the calling thread is outside until no other thread holds.
  static void wait_outside(LaunchThread &thread) noexcept;
  /// Called in a forked child, where the holder does not exist.
  static void forget_after_fork() noexcept;

private:
  static std::atomic<bool> is_set_;
  WithoutPythonLock unlocked_; ///< a call that is open may need it to end
  bool is_first_ = false;      ///< of its thread
  bool is_complete_ = false;
};

// The open captures that a thread has begun.

class GraphTable;

/// Owned by a LaunchThread; the graph table's mutex guards it.
class CaptureStack : public OpenCapture {
public:
  bool is_open() noexcept override;
  void add_metrics(uint32_t metrics) noexcept override;

private:
  friend class GraphTable;
  struct Begun {
    const void *stream;
    uint32_t graph;
  };
  GraphTable *table_ = nullptr;
  std::vector<Begun> begun_; ///< innermost last
};

/// Only its own thread writes. Lives for the whole process; a later thread reuses it.
struct LaunchThread {
  std::atomic<uint32_t> serial{0};    ///< odd while inside a watched call
  std::atomic<uint32_t> forgotten{0}; ///< of a call whose end is not reported; set by other threads
  uint64_t launch_id = 0;             ///< of the open call; 0: it was not noted
  bool is_kernel = false;             ///< the open call launches a kernel
  bool is_captured = false;           ///< the open call became a node of a graph: nothing ran

  const void *context = nullptr; ///< newest context noted, in this generation of the list
  uint32_t context_generation = 0;

  struct Code {
    const void *function = nullptr;
    uint32_t generation = 0;
    uint16_t number = 0;
  };
  std::array<Code, 64> codes{}; ///< of functions launched lately, by hash

  struct Graph {
    const void *executable = nullptr;
    uint32_t generation = 0;
    uint32_t layout = 0;
  };
  std::array<Graph, 64> graphs{}; ///< launched lately, by hash
  CaptureStack captures;
  MarkerRanges markers;
  OpenRange memory_call; ///< the open call that manages memory

  struct Stream {
    const void *handle = nullptr; ///< null before the first lookup
    uint32_t number = 0;
  };
  Stream stream;           ///< launched to lately, where a vendor does not number streams
  uint32_t dispatches = 0; ///< of the open call so far, where it launches a graph
  bool is_graph = false;   ///< the open call launches a graph

  bool is_inside() const noexcept {
    uint32_t now = serial.load(std::memory_order_relaxed);
    return now % 2 != 0 && now != forgotten.load(std::memory_order_relaxed);
  }
  void enter() noexcept {
    uint32_t before = serial.load(std::memory_order_relaxed);
    bool is_forgotten = before % 2 != 0 && !is_inside();
    serial.store((before + (is_forgotten ? 1 : 0)) | 1, std::memory_order_relaxed);
    // What follows is not moved before the store by the compiler; `wait_for_open_calls` has the
    // processor do the same, so that the common path needs no fence.
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  void leave() noexcept {
    uint32_t inside = serial.load(std::memory_order_relaxed) | 1;
    serial.store(inside + 1, std::memory_order_release);
  }
};

/// The calling thread's; null if there is no memory for it.
LaunchThread *this_launch_thread() noexcept;

/// Waits until every open call of other threads has ended, but not longer than `limit_ms`; returns
/// whether they have. What the threads did in calls that ended is visible then. [any thread]
bool wait_for_open_calls(uint32_t limit_ms);

/// Calls that are open now count as ended, because their ends are not reported. Call while no
/// callback can come, before callbacks are enabled.
void forget_open_calls() noexcept;

/// Notes that the thread is inside a watched call, as soon as no other thread holds calls back.
inline void enter_call(LaunchThread &thread) noexcept {
  bool is_inside = thread.is_inside(); // of an outer call, or one whose end was not reported
  thread.enter();
  if (LaunchHold::is_set() && !is_inside) [[unlikely]]
    LaunchHold::wait_outside(thread);
}

} // namespace proton
