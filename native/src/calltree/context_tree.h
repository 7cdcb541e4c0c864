// The process-wide tree of context ids: scopes, states, ops and Python frames of every session.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "record/record.h"
#include "support/name.h"

namespace proton {

/// One frame on one path. `generation` is the serial of the newest session when the frame was
/// opened, which is how a session drops the frames that were opened before it started.
struct ContextNode {
  ContextId parent = 0;
  uint32_t generation = 0;
  uint32_t depth = 0;    ///< frames above, root 0
  uint32_t children = 0; ///< guarded by the tree's mutex
  int32_t variant = -1;  ///< as `intern_variant` numbers it
  FrameKind kind = FrameKind::kRoot;
  bool live = false;
  Name name;
  uint64_t key = 0; ///< position in the lookup table
  // Only records of these epochs, and of those between, may name this node.
  std::atomic<EpochId> first_used{0};
  std::atomic<EpochId> last_used{0};
};

/// Interns paths. Nodes are freed by `collect` when no live phase, stack or child needs them.
///
/// An id that is found without a lock, in a cache or on the stack of another thread, may be freed
/// meanwhile. The reader therefore reads an even `collections()`, notes the id where `collect`
/// looks (a stack, or the stamp of `touch`), then compares the number again. If it is unchanged, no
/// collection began in between and the next one sees the note; otherwise the search starts over.
///
/// Lock order: inside the aggregator's mutex, outside those of the thread list and of names.
class ContextTree {
public:
  static ContextTree &instance();

  static constexpr ContextId kStale = 0xffffffffu; ///< names no node

  /// Returns the child of `parent`, which is made if it is new. The caller keeps `parent` alive.
  /// [any thread] locks
  ContextId child(ContextId parent, std::string_view name, FrameKind kind, uint32_t generation,
                  EpochId epoch);
  /// Same for a parent that the caller does not keep alive: kStale if `collections()` has passed
  /// `collection`, because the parent may be gone. [any thread] locks
  ContextId child_since(uint32_t collection, ContextId parent, std::string_view name,
                        FrameKind kind, uint32_t generation, EpochId epoch, int32_t variant = -1);
  /// The node; valid while the caller keeps it alive (on a stack or by an uncollected epoch).
  const ContextNode &node(ContextId id) const { return slot(id); }
  /// Notes that a record of `epoch` may name the node. True if the newest note was of another
  /// epoch. A thread that still works in an older epoch does not undo a newer note. [any thread]
  bool touch(ContextId id, EpochId epoch) {
    ContextNode &node = slot(id);
    EpochId seen = node.last_used.load(std::memory_order_seq_cst);
    if (seen == epoch)
      return false;
    if (seen > epoch) {
      note_late(node, epoch);
      return true;
    }
    while (seen < epoch && !node.last_used.compare_exchange_weak(seen, epoch)) {
    }
    return true;
  }
  /// As `touch`, for an id that the caller does not keep alive: false if `collections()` is no
  /// longer `collection`. Locks at the first use in an epoch only. [any thread]
  bool touch_since(uint32_t collection, ContextId id, EpochId epoch);
  /// Prefetches what `touch` reads. Accepts any number.
  void prefetch(ContextId id) const {
    const ContextNode *chunk =
        chunks_[id / kChunkNodes % kMaxChunks].load(std::memory_order_relaxed);
    if (chunk)
      __builtin_prefetch(&chunk[id % kChunkNodes].last_used);
  }
  /// Number of beginnings and ends of collections: odd while one runs. A thread's cache is valid
  /// only for the number that it saw.
  uint32_t collections() const { return collections_.load(std::memory_order_seq_cst); }
  /// Same, but waits until no collection runs: always even. [any thread]
  uint32_t settled_collections() const;
  /// Frees the nodes that no record of a live epoch may name and that are neither roots nor above
  /// one. `live_epochs` ascend, and no epoch begins meanwhile. Works in slices, each a collection
  /// of its own, so that threads that enter scopes wait for one slice at most.
  void collect(const std::vector<EpochId> &live_epochs,
               const std::function<void(std::vector<ContextId> &)> &roots);
  size_t live_count() const;
  /// Called in a forked child, where the waiting threads do not exist.
  void reset_after_fork() noexcept { waiting_.store(0, std::memory_order_relaxed); }

private:
  using Lock = std::unique_lock<std::mutex>;
  static constexpr uint32_t kChunkNodes = 1024;
  static constexpr uint32_t kMaxChunks = 1u << 16;
  static constexpr size_t kLookups = 1024;
  static constexpr uint32_t kSlice = 512; ///< nodes that a collection looks at in one go

  ContextTree();
  ContextNode &slot(ContextId id) const {
    return chunks_[id / kChunkNodes].load(std::memory_order_acquire)[id % kChunkNodes];
  }
  ContextId find_or_add(ContextId parent, Name name, FrameKind kind, uint32_t generation,
                        EpochId epoch, int32_t variant); ///< [mutex held]
  static void note_late(ContextNode &node, EpochId epoch) noexcept;
  ContextId allocate();
  void release(ContextId id);
  std::unordered_multimap<uint64_t, ContextId> &lookup(uint64_t key) {
    return lookups_[key % kLookups];
  }
  Lock wait_for_lock() const;
  /// Waits between two slices until the threads that wait for the lock have had it.
  void let_others_pass() const;
  /// Returns where the next slice begins, 0 after the last.
  uint32_t collect_slice(uint32_t start, const std::vector<EpochId> &live_epochs,
                         const std::function<void(std::vector<ContextId> &)> &roots);

  mutable std::mutex mutex_;
  mutable std::atomic<uint32_t> waiting_{0}; ///< threads that wait for the lock
  std::atomic<uint32_t> collections_{0};
  /// Many small tables: the more one holds, the longer its growth blocks threads that add to it.
  std::array<std::unordered_multimap<uint64_t, ContextId>, kLookups> lookups_;
  std::vector<ContextId> free_;
  uint32_t used_ = 0; ///< slots ever handed out
  mutable std::vector<std::atomic<ContextNode *>> chunks_;
};

} // namespace proton
