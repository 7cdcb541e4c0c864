#include "calltree/context_tree.h"

#include <algorithm>
#include <ctime>

#include "support/error.h"
#include "support/fork_locks.h"

namespace proton {
namespace {

constexpr timespec kBetweenSlices{0, 50'000};
constexpr int kMostPauses = 20; ///< between two slices, where threads that wait need longer

uint64_t lookup_key(ContextId parent, const Name &name, FrameKind kind, uint32_t generation,
                    int32_t variant) {
  uint64_t hash = reinterpret_cast<uintptr_t>(name.key());
  for (uint64_t part : {uint64_t{parent}, static_cast<uint64_t>(kind), uint64_t{generation},
                        uint64_t{static_cast<uint32_t>(variant)}}) {
    hash = (hash ^ part) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 29;
  }
  return hash;
}

/// Makes the number odd before the stacks are read, so that a thread that notes an id too late to
/// be seen finds another number.
class Collecting {
public:
  explicit Collecting(std::atomic<uint32_t> &number) : number_(number) { number_.fetch_add(1); }
  ~Collecting() { number_.fetch_add(1); }
  Collecting(const Collecting &) = delete;
  Collecting &operator=(const Collecting &) = delete;

private:
  std::atomic<uint32_t> &number_;
};

} // namespace

ContextTree &ContextTree::instance() {
  static ContextTree *tree = new ContextTree; // outlives threads of the target
  return *tree;
}

ContextTree::ContextTree() : chunks_(kMaxChunks) {
  ContextId root = allocate();
  slot(root).live = true;
  guard_across_fork(mutex_, LockRank::kContexts);
}

ContextId ContextTree::allocate() {
  if (!free_.empty()) {
    ContextId id = free_.back();
    free_.pop_back();
    return id;
  }
  if (used_ == kChunkNodes * kMaxChunks)
    throw Error(ErrorCode::kScope, "more than 67 million distinct call paths are alive; "
                                   "use fewer distinct scope names or clear phases");
  if (used_ % kChunkNodes == 0) {
    free_.reserve(used_ + kChunkNodes); // so that a collection needs no memory for it
    chunks_[used_ / kChunkNodes].store(new ContextNode[kChunkNodes], std::memory_order_release);
  }
  return used_++;
}

ContextId ContextTree::child(ContextId parent, std::string_view text, FrameKind kind,
                             uint32_t generation, EpochId epoch) {
  Name name(text); // before the lock: names have one of their own
  Lock lock = wait_for_lock();
  return find_or_add(parent, std::move(name), kind, generation, epoch, -1);
}

ContextId ContextTree::child_since(uint32_t collection, ContextId parent, std::string_view text,
                                   FrameKind kind, uint32_t generation, EpochId epoch,
                                   int32_t variant) {
  Name name(text);
  Lock lock = wait_for_lock();
  if (collections_.load(std::memory_order_relaxed) != collection)
    return kStale;
  return find_or_add(parent, std::move(name), kind, generation, epoch, variant);
}

bool ContextTree::touch_since(uint32_t collection, ContextId id, EpochId epoch) {
  // It is noted already, unless the node was freed and another one has its id by now.
  const ContextNode &node = slot(id);
  if (node.last_used.load(std::memory_order_seq_cst) >= epoch &&
      node.first_used.load(std::memory_order_seq_cst) <= epoch)
    return collections() == collection;
  Lock lock = wait_for_lock();
  if (collections_.load(std::memory_order_relaxed) != collection)
    return false;
  touch(id, epoch);
  return true;
}

ContextId ContextTree::find_or_add(ContextId parent, Name name, FrameKind kind, uint32_t generation,
                                   EpochId epoch, int32_t variant) {
  uint64_t key = lookup_key(parent, name, kind, generation, variant);
  auto [first, last] = lookup(key).equal_range(key);
  for (auto candidate = first; candidate != last; ++candidate) {
    const ContextNode &node = slot(candidate->second);
    if (node.parent == parent && node.name == name && node.kind == kind &&
        node.generation == generation && node.variant == variant) {
      touch(candidate->second, epoch);
      return candidate->second;
    }
  }
  ContextId id = allocate();
  ContextNode &above = slot(parent);
  ContextNode &node = slot(id);
  node.parent = parent;
  node.generation = generation;
  node.depth = above.depth + 1;
  node.variant = variant;
  node.kind = kind;
  node.name = std::move(name);
  node.key = key;
  node.live = true;
  node.first_used.store(epoch, std::memory_order_relaxed);
  node.last_used.store(epoch, std::memory_order_relaxed);
  ++above.children;
  lookup(key).emplace(key, id);
  return id;
}

void ContextTree::release(ContextId id) {
  ContextNode &node = slot(id);
  auto [first, last] = lookup(node.key).equal_range(node.key);
  for (auto candidate = first; candidate != last; ++candidate) {
    if (candidate->second == id) {
      lookup(node.key).erase(candidate);
      break;
    }
  }
  --slot(node.parent).children;
  node.live = false;
  node.name = Name();
  free_.push_back(id);
}

void ContextTree::note_late(ContextNode &node, EpochId epoch) noexcept {
  EpochId seen = node.first_used.load(std::memory_order_seq_cst);
  while (seen > epoch && !node.first_used.compare_exchange_weak(seen, epoch)) {
  }
}

void ContextTree::collect(const std::vector<EpochId> &live_epochs,
                          const std::function<void(std::vector<ContextId> &)> &gather_roots) {
  uint32_t start = collect_slice(1, live_epochs, gather_roots);
  while (start != 0) {
    let_others_pass();
    start = collect_slice(start, live_epochs, gather_roots);
  }
}

ContextTree::Lock ContextTree::wait_for_lock() const {
  Lock lock(mutex_, std::try_to_lock);
  if (!lock) {
    waiting_.fetch_add(1, std::memory_order_relaxed);
    lock.lock();
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  return lock;
}

void ContextTree::let_others_pass() const {
  // A waiting thread may take longer to wake than this one sleeps, and would find the next slice
  // running each time.
  int pauses = 0;
  do
    nanosleep(&kBetweenSlices, nullptr);
  while (waiting_.load(std::memory_order_relaxed) != 0 && ++pauses < kMostPauses);
}

uint32_t
ContextTree::collect_slice(uint32_t begin, const std::vector<EpochId> &live_epochs,
                           const std::function<void(std::vector<ContextId> &)> &gather_roots) {
  std::lock_guard lock(mutex_);
  std::vector<ContextId> roots;
  uint32_t end = std::min(used_, begin + kSlice);
  Collecting collecting(collections_);
  gather_roots(roots);
  std::sort(roots.begin(), roots.end());
  auto is_named = [&](const ContextNode &node) {
    auto live = std::lower_bound(live_epochs.begin(), live_epochs.end(),
                                 node.first_used.load(std::memory_order_seq_cst));
    return live != live_epochs.end() && *live <= node.last_used.load(std::memory_order_seq_cst);
  };
  auto is_dead = [&](ContextId id) {
    const ContextNode &node = slot(id);
    return id != 0 && node.live && node.children == 0 && !is_named(node) &&
           !std::binary_search(roots.begin(), roots.end(), id);
  };
  for (uint32_t start = begin; start < end; ++start) {
    // A freed leaf may leave its parent without children, so go up while that lasts.
    for (ContextId id = start; is_dead(id);) {
      ContextId parent = slot(id).parent;
      release(id);
      id = parent;
    }
  }
  return end < used_ ? end : 0;
}

uint32_t ContextTree::settled_collections() const {
  uint32_t number = collections();
  if (number % 2 == 0)
    return number;
  Lock lock = wait_for_lock(); // a collection holds it from odd to even
  return collections();
}

size_t ContextTree::live_count() const {
  std::lock_guard lock(mutex_);
  return used_ - free_.size() - 1;
}

} // namespace proton
