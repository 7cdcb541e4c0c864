#include "context/layer/layer_range.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "context/thread/shadow_stack.h"
#include "context/thread/thread_state.h"
#include "record/device.h"
#include "support/fork_locks.h"

namespace proton {
namespace {

constexpr size_t kMostPaths = 65536;
constexpr size_t kMostVariants = 64;   // as of paths of kernels
constexpr size_t kMostChanges = 32768; // a power of two
constexpr size_t kFirstChanges = 256;
constexpr size_t kThreads = 128;

struct PathTable {
  PathTable() { guard_across_fork(mutex, LockRank::kLayers); }
  std::mutex mutex;
  using Place = std::pair<const LayerPath *, std::string>;
  std::map<std::pair<Place, int32_t>, std::unique_ptr<LayerPath>> paths;
  std::map<Place, size_t> variants; ///< how many a layer has
};

PathTable &path_table() {
  static PathTable *table = new PathTable; // outlives threads of the target
  return *table;
}

/// From this node on, those of the thread are of these layers.
struct Change {
  uint64_t node = 0;
  const LayerPath *path = nullptr;
};

/// The newest changes of one thread. Its owner writes, threads of a backward pass read.
class Changes {
public:
  void note(uint64_t thread, uint64_t node, const LayerPath *path) noexcept {
    Lock lock(is_busy_);
    if (thread_ != thread) { // of a thread that used the place before
      thread_ = thread;
      count_ = 0;
    }
    if (count_ != 0 && newest().node == node) {
      newest().path = path;
      return;
    }
    if (count_ != 0 && newest().path == path)
      return;
    if (count_ == ring_.size() && ring_.size() < kMostChanges)
      grow();
    if (ring_.empty())
      return;
    ring_[count_++ & (ring_.size() - 1)] = {node, path};
  }

  const LayerPath *find(uint64_t thread, uint64_t node) noexcept {
    Lock lock(is_busy_);
    if (thread_ != thread || count_ == 0)
      return nullptr;
    uint64_t first = count_ > ring_.size() ? count_ - ring_.size() : 0;
    uint64_t end = count_; // the first that is later than the node
    while (first < end) {
      uint64_t middle = first + (end - first) / 2;
      if (at(middle).node <= node)
        first = middle + 1;
      else
        end = middle;
    }
    bool is_known = end != 0 && end + ring_.size() > count_;
    return is_known ? at(end - 1).path : nullptr;
  }

  /// The thread that held it does not exist here.
  void release_after_fork() noexcept { is_busy_.clear(); }

private:
  /// Held for a few instructions.
  class Lock {
  public:
    explicit Lock(std::atomic_flag &flag) noexcept : flag_(flag) {
      while (flag_.test_and_set(std::memory_order_acquire))
        sched_yield();
    }
    ~Lock() { flag_.clear(std::memory_order_release); }
    Lock(const Lock &) = delete;
    Lock &operator=(const Lock &) = delete;

  private:
    std::atomic_flag &flag_;
  };

  Change &at(uint64_t number) noexcept { return ring_[number & (ring_.size() - 1)]; }
  Change &newest() noexcept { return at(count_ - 1); }
  /// Nothing was overwritten yet, so that what there is keeps its place.
  void grow() noexcept {
    try {
      ring_.resize(std::max(kFirstChanges, 2 * ring_.size()));
    } catch (...) { // no memory: the oldest are overwritten
    }
  }

  std::atomic_flag is_busy_;
  uint64_t thread_ = 0; ///< as the target numbers it; 0: none
  uint64_t count_ = 0;
  std::vector<Change> ring_;
};

std::array<Changes, kThreads> &changes() {
  static auto *all = new std::array<Changes, kThreads>; // outlives threads of the target
  return *all;
}

std::atomic<uint64_t (*)()> g_next_node{nullptr};
std::atomic<uint64_t (*)()> g_thread{nullptr};

// Initial-exec: one instruction instead of a call per access.
[[gnu::tls_model("initial-exec")]] thread_local const LayerPath *t_layers = nullptr;

} // namespace

/// The variant for arguments past the limit.
static int32_t other_variant() {
  static const int32_t number = [] {
    VariantRecord other;
    other.signature = "other";
    return intern_variant(other);
  }();
  return number;
}

const LayerPath *layer_below(const LayerPath *outer, std::string_view name,
                             int32_t variant) noexcept {
  try {
    PathTable &table = path_table();
    std::lock_guard lock(table.mutex);
    PathTable::Place place(outer, std::string(name));
    auto found = table.paths.find({place, variant});
    if (found == table.paths.end() && variant >= 0 && table.variants[place]++ >= kMostVariants)
      found = table.paths.find({place, variant = other_variant()});
    if (found != table.paths.end())
      return found->second.get();
    if (table.paths.size() >= kMostPaths)
      return outer;
    auto path = std::make_unique<LayerPath>();
    path->outer = outer;
    path->depth = outer ? outer->depth + 1 : 1;
    path->name = std::string(name);
    path->hash = hashed(path->name).hash;
    path->variant = variant;
    const LayerPath *made = path.get();
    table.paths.emplace(std::pair(std::move(place), variant), std::move(path));
    return made;
  } catch (...) { // no memory
    return outer;
  }
}

void set_node_numbers(const NodeNumbers &numbers) noexcept {
  g_thread.store(numbers.thread, std::memory_order_release);
  g_next_node.store(numbers.next_node, std::memory_order_release);
}

const LayerPath *current_layers() noexcept { return t_layers; }

[[gnu::hot]] void set_current_layers(const LayerPath *path) noexcept {
  t_layers = path;
  auto next_node = g_next_node.load(std::memory_order_acquire);
  if (!next_node)
    return;
  uint64_t thread = g_thread.load(std::memory_order_relaxed)();
  changes()[thread % kThreads].note(thread, next_node(), path);
}

const LayerPath *layers_of_node(uint64_t node, uint64_t thread) noexcept {
  return thread == 0 ? nullptr : changes()[thread % kThreads].find(thread, node);
}

void reset_layers_after_fork() noexcept {
  for (Changes &each : changes())
    each.release_after_fork();
}

namespace {

constexpr std::string_view kBackward = "<backward>";

// Of the node that the thread ran last.
[[gnu::tls_model("initial-exec")]] thread_local const LayerPath *t_newest = nullptr;

/// The layers of `path` inside of those that it shares with `current`, innermost first.
std::vector<const LayerPath *> inside(const LayerPath *path, const LayerPath *current) {
  std::vector<const LayerPath *> layers;
  while (path != current) {
    if (!current || (path && path->depth >= current->depth)) {
      layers.push_back(path);
      path = path->outer;
    } else {
      current = current->outer;
    }
  }
  return layers;
}

} // namespace

[[gnu::hot]] OpenLayer enter_layer(const LayerPath *path, const SessionState &now) noexcept {
  OpenLayer layer;
  layer.outer = current_layers();
  if (!path || path == layer.outer)
    return layer; // no memory for it, or too many
  try {
    ShadowStack &stack = this_thread().stack;
    layer.range.depth = stack.depth();
    StackEntry &entry = stack.push({path->name, path->hash, path->variant}, FrameKind::kLayer, now);
    layer.range.scope_id = entry.scope_id();
    if (now.wants_times)
      begin_timed_frame(entry);
    set_current_layers(path);
  } catch (...) { // no memory or too deep: what follows stays with the enclosing frame
  }
  return layer;
}

[[gnu::hot]] void exit_layer(const OpenLayer &layer) noexcept {
  if (!layer.range.is_open())
    return;
  exit_timed_range(layer.range);
  set_current_layers(layer.outer);
}

bool stands_in_layer() noexcept {
  if (!current_layers())
    return false;
  ShadowStack &stack = this_thread().stack; // made when the layer was entered
  return stack.depth() != 0 && stack.top().kind == FrameKind::kLayer;
}

OpenBackward enter_backward(int64_t node, uint64_t thread) noexcept {
  OpenBackward backward;
  SessionState now = session_state();
  if (!now.active || !now.wants_layers)
    return backward;
  if (node >= 0)
    t_newest = layers_of_node(static_cast<uint64_t>(node), thread);
  const LayerPath *path = t_newest;
  try {
    std::vector<const LayerPath *> layers = inside(path, current_layers());
    ShadowStack &stack = this_thread().stack;
    backward.outer = current_layers();
    backward.depth = stack.depth();
    auto open = [&](HashedName name) {
      const StackEntry &entry = stack.push(name, FrameKind::kLayer, now);
      backward.scope_id = backward.is_open() ? backward.scope_id : entry.scope_id();
      ++backward.count;
    };
    for (auto each = layers.rbegin(); each != layers.rend(); ++each)
      open({(*each)->name, (*each)->hash, (*each)->variant});
    static const HashedName kName = hashed(kBackward);
    open(kName);
    set_current_layers(path);
  } catch (...) { // no memory or too deep: what was opened is closed at the end
  }
  return backward;
}

void exit_backward(const OpenBackward &backward) noexcept {
  if (!backward.is_open())
    return;
  ShadowStack &stack = this_thread().stack;
  if (stack.find(backward.depth, backward.scope_id)) {
    for (uint32_t i = 0; i < backward.count && backward.depth + i < stack.depth(); ++i)
      stack.entry(backward.depth + i).set_start(StackEntry::kEnded);
    stack.pop_ended(session_state()); // frames that the program left open go first
  }
  set_current_layers(backward.outer);
}

} // namespace proton
