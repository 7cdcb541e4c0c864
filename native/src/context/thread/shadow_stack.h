// The thread's own stack of context ids; its owner pushes and pops without a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "context/thread/current.h"
#include "record/record.h"

namespace proton {

// The paths that a thread took before: a child's id by its parent and name, without a lock.

/// A name with the hash its owner has at hand (Python strings cache theirs).
struct HashedName {
  std::string_view text;
  uint64_t hash = 0;
  int32_t variant =
      -1; ///< what else tells frames of one name apart, as `intern_variant` numbers it
};

/// A child as its parent's thread asks for it.
struct PathStep {
  ContextId parent = 0;
  HashedName name;
  FrameKind kind = FrameKind::kUnknown;
  uint32_t generation = 0;
  uint32_t collection = 0; ///< of the context tree: ids are valid for this number only
};

/// Owned by one thread. Programs repeat themselves, and the work in between empties the processor's
/// caches, so entries lie in the order of their first use, and each knows which was used after it.
class PathCache {
public:
  static constexpr size_t kLongestName = 84; ///< autograd's names are long

  /// The id; kNone if the step has to be looked up.
  ContextId find(const PathStep &step) noexcept {
    Entry &guess = entries_[entries_[last_].next];
    if (matches(guess, step)) [[likely]]
      return use(guess);
    for (uint32_t probe = 0; probe < kProbes; ++probe) {
      uint16_t place = index_[slot(step, probe)];
      if (place != 0 && matches(entries_[place], step))
        return use(entries_[place]);
    }
    return kNone;
  }

  /// Keeps what a lookup found; a name longer than kLongestName is not kept.
  void keep(const PathStep &step, ContextId id) noexcept;

  /// A guess at what is found next: any id, which may be gone.
  ContextId expected() const noexcept { return entries_[entries_[last_].next].id; }

  static constexpr ContextId kNone = 0; ///< the root, which is not a child

private:
  static constexpr size_t kLine = 64;
  static constexpr uint32_t kEntries = 1024; // a training step has hundreds of paths
  static constexpr uint32_t kSlots = 2048;
  static constexpr uint32_t kProbes = 4;

  struct alignas(kLine) Entry {
    uint64_t hash = 0;
    ContextId parent = 0;
    ContextId id = 0;
    uint32_t generation = 0;
    uint32_t collection = 1; ///< odd: no settled number
    int32_t variant = -1;
    FrameKind kind = FrameKind::kUnknown;
    uint8_t length = 0;
    uint16_t next = 0;                   ///< entry that was used after this one the last time
    std::array<char, kLongestName> text; ///< own copy: the node may be freed while we compare
  };

  static bool matches(const Entry &entry, const PathStep &step) noexcept {
    const std::string_view text = step.name.text;
    return entry.hash == step.name.hash && entry.parent == step.parent &&
           entry.collection == step.collection && entry.generation == step.generation &&
           entry.kind == step.kind && entry.variant == step.name.variant &&
           entry.length == text.size() &&
           std::memcmp(entry.text.data(), text.data(), text.size()) == 0;
  }
  static uint32_t slot(const PathStep &step, uint32_t probe) noexcept {
    uint64_t mixed =
        step.name.hash ^ (uint64_t{step.parent} * 0x9E3779B97F4A7C15ull) ^
        static_cast<uint64_t>(step.kind) ^
        (uint64_t{static_cast<uint32_t>(step.name.variant + 1)} * 0xC2B2AE3D27D4EB4Full);
    return static_cast<uint32_t>((mixed >> 7) + probe) % kSlots;
  }
  ContextId use(Entry &entry) noexcept {
    auto place = static_cast<uint16_t>(&entry - entries_.data());
    entries_[last_].next = place;
    last_ = place;
    // The entry after the next: the next one was prefetched a step ago.
    const auto *upcoming = reinterpret_cast<const char *>(&entries_[entries_[entry.next].next]);
    __builtin_prefetch(upcoming);
    __builtin_prefetch(upcoming + kLine);
    return entry.id;
  }

  uint16_t last_ = 0;
  uint16_t used_ = 1; ///< entry 0 matches nothing
  std::array<uint16_t, kSlots> index_{};
  std::array<Entry, kEntries> entries_{};
};

/// For names that come without a hash.
HashedName hashed(std::string_view text, int32_t variant = -1) noexcept;

struct StackEntry {
  StackEntry() = default;
  StackEntry(const StackEntry &other) noexcept { *this = other; }
  StackEntry &operator=(const StackEntry &other) noexcept;

  std::atomic<ContextId> id{0};
  FrameKind kind = FrameKind::kScope;
  bool is_noop = false;      ///< opened while no session was active
  bool is_first_use = false; ///< perhaps the first use of this path in its epoch
  bool is_held = false;      ///< an object of the program closes it, in whatever order
  uint32_t state_serial = 0; ///< state that is already part of the path
  std::atomic<uint64_t> scope_id_{0};
  uint64_t name_hash = 0;
  /// Time of TickClock; 0 if the frame is not timed. Set after the id and reset before it, so that
  /// other threads find both or neither.
  std::atomic<int64_t> start_ns{0};

  /// The start of a frame that was closed while others above it are open.
  static constexpr int64_t kEnded = -1;

  uint64_t scope_id() const noexcept { return scope_id_.load(std::memory_order_relaxed); }
  void set_scope_id(uint64_t id) noexcept { scope_id_.store(id, std::memory_order_relaxed); }
  int64_t start() const noexcept { return start_ns.load(std::memory_order_relaxed); }
  void set_start(int64_t tick_ns) noexcept { start_ns.store(tick_ns, std::memory_order_release); }
  bool has_ended() const noexcept { return start() == kEnded; }
};

/// A timed scope that has not ended.
struct OpenScope {
  ContextId id = 0;
  int64_t start_ns = 0;        ///< of TickClock; 0: not timed
  uint32_t thread = kNoThread; ///< number, where it matters
};

/// Owned by one thread. Other threads read `published`, the timed scopes and, in a collection, the
/// ids. ContextTree says how an id that was found without a lock is kept alive.
class ShadowStack {
  struct State {
    std::string name;
    uint32_t serial;
  };

public:
  /// What stands on the stack at some times and aside at others, as the frames of one task do.
  struct Frames {
    std::vector<StackEntry> entries;
    std::vector<State> states;
    ContextId base = 0; ///< where an empty stack stands
    size_t place = 0;   ///< among all frames of the stack
  };

  ShadowStack() = default;
  ~ShadowStack();
  ShadowStack(const ShadowStack &) = delete;
  ShadowStack &operator=(const ShadowStack &) = delete;

  /// Opens a frame and returns its entry. Throws Error(kScope) past a million frames.
  StackEntry &push(HashedName name, FrameKind kind, const SessionState &now);
  /// Opens a no-op frame, so that its exit finds a partner.
  StackEntry &push_noop(HashedName name, FrameKind kind);
  /// Gives a no-op frame on top a number as other frames have; 0 if the top is another frame.
  uint64_t number_noop() noexcept;
  /// Closes the top frame, which must exist. True if the frame was opened in an earlier epoch and
  /// the present one had not seen its path.
  bool pop(const SessionState &now) noexcept;
  /// Closes a frame that has others above: it leaves when it comes to the top. Returns what `pop`
  /// does.
  bool end(uint32_t index, const SessionState &now) noexcept;
  /// Takes frames off the top that were closed before.
  void pop_ended(const SessionState &now) noexcept {
    while (depth() != 0 && top().has_ended())
      pop(now);
  }
  /// Has the owner close the frame at its next step. False without memory. [any thread]
  bool end_from_elsewhere(uint32_t index, uint64_t scope_id) noexcept;
  /// Closes the frames that other threads asked for.
  void settle(const SessionState &now) noexcept {
    if (asked_.load(std::memory_order_relaxed)) [[unlikely]]
      take_asked(now);
  }
  /// The frame at `index`; null if it does not belong to the scope. [any thread]
  const StackEntry *find(uint32_t index, uint64_t scope_id) const noexcept;
  /// A scope by its number, on the stack or aside. [any thread] locks
  std::optional<OpenScope> find_scope(uint64_t scope_id);
  /// Closes frames until `depth` are left; returns how many closed.
  uint32_t pop_to(uint32_t depth, const SessionState &now) noexcept;

  void enter_state(std::string_view name, const SessionState &now);
  /// Restores the outer state. Throws Error(kScope) when there is none.
  void exit_state(const SessionState &now);

  uint32_t state_depth() const noexcept { return static_cast<uint32_t>(states_.size()); }
  uint32_t depth() const noexcept { return depth_.load(std::memory_order_relaxed); }
  StackEntry &entry(uint32_t index) noexcept;
  StackEntry &top() noexcept { return entry(depth() - 1); }
  /// Where the stack alone stands: at its top or its base; 0: neither.
  ContextId own() noexcept {
    return depth() == 0 ? empty_base() : top().id.load(std::memory_order_relaxed);
  }
  /// Where the stack stands while it is empty; 0: nowhere of its own.
  ContextId empty_base() const noexcept { return base_.load(std::memory_order_relaxed); }
  /// Sets where the stack stands while it is empty; the caller keeps `base` alive meanwhile.
  /// Returns the base before.
  ContextId set_base(ContextId base, const SessionState &now) noexcept;
  /// Context for a record of this thread: own stack, else the starting thread's, plus the state.
  ContextId current(const SessionState &now);
  /// An id that this stack keeps alive, for other threads. [any thread]
  ContextId published() const noexcept { return published_.load(std::memory_order_acquire); }
  /// Ids that a collection must keep. [any thread] locks
  void append_ids(std::vector<ContextId> &ids) const;
  /// Appends the timed scopes, those of a task outermost first. Call while no collection can begin.
  /// [any thread] locks
  void append_open(std::vector<OpenScope> &scopes) const;

  // Frames that stand aside. Other threads read them, so that the lock is held for every change.

  static std::mutex &frames_mutex();
  /// Visits every frame on the stack and aside. [any thread, lock held]
  template <typename Visit> void for_each_entry(Visit &&visit) const {
    uint32_t count = depth_.load(std::memory_order_seq_cst);
    for (uint32_t i = 0; i < count; ++i)
      visit(blocks_[i / kBlockEntries].load(std::memory_order_acquire)[i % kBlockEntries]);
    for (const Frames *frames : frames_)
      for (const StackEntry &entry : frames->entries)
        visit(entry);
  }
  /// Knows the frames from now on. May throw std::bad_alloc. [lock held]
  void add(Frames &frames);
  /// Forgets the frames, noted for records of this epoch; returns what stood in them. [any thread,
  /// lock held]
  std::vector<StackEntry> drop(Frames &frames, const SessionState &now) noexcept;
  /// Puts what is on the stack into `from`, and what stands in `to` on the stack. May throw
  /// std::bad_alloc, and then changes nothing. Call `publish` without the lock. [lock held]
  void exchange(Frames &from, Frames &to);
  /// Shows other threads where the stack stands.
  void publish(const SessionState &now) noexcept {
    if (states_.empty()) [[likely]] // the root when the stack is empty
      published_.store(own(), std::memory_order_release);
    else
      publish_state(now);
  }
  /// Closes every frame and state: the thread ends, and another one may get this stack.
  void leave(const SessionState &now) noexcept;
  /// Changes when a thread leaves this stack. [any thread]
  uint32_t generation() const noexcept { return generation_.load(std::memory_order_seq_cst); }
  /// Forgets every frame and state, in a forked child.
  void clear() noexcept;

private:
  static constexpr uint32_t kBlockEntries = 256;
  static constexpr uint32_t kMaxBlocks = 4096;
  /// `push` onto a frame of the same block, without states, of a path found before; null otherwise.
  StackEntry *push_known(HashedName name, FrameKind kind, const SessionState &now) noexcept;
  /// kStale if a collection began since the number was read, or if `parent` is kStale.
  ContextId child(ContextId parent, HashedName name, FrameKind kind, const SessionState &now,
                  uint32_t collection);
  ContextId with_state(ContextId base, const SessionState &now, uint32_t collection);
  ContextId base() noexcept;
  bool lacks_state() noexcept;
  void publish_state(const SessionState &now) noexcept;
  void clear_aside() noexcept;
  void end_aside(uint64_t scope_id, const SessionState &now) noexcept;
  StackEntry &append();
  uint64_t next_scope_id() noexcept;
  void take_asked(const SessionState &now) noexcept;

  /// A frame that another thread closed.
  struct Asked {
    uint32_t index = 0;
    uint64_t scope_id = 0;
    Asked *next = nullptr;
  };

  bool is_first_use_ = false; ///< set by `child`
  std::atomic<uint32_t> depth_{0};
  std::atomic<uint32_t> generation_{0};
  std::atomic<ContextId> held_{0}; ///< about to be published
  std::atomic<ContextId> published_{0};
  std::atomic<ContextId> base_{0};
  std::atomic<Asked *> asked_{nullptr};
  std::array<std::atomic<StackEntry *>, kMaxBlocks> blocks_{};
  std::vector<State> states_;
  std::vector<Frames *> frames_; ///< all that may stand aside; those on the stack are empty
  uint32_t next_state_serial_ = 1;
  uint64_t next_scope_id_ = 0; ///< of a block that only this stack hands out
  uint64_t scope_ids_end_ = 0;
  PathCache known_;
};

/// Names a thread by its stack while the thread lives. Later threads use the same stacks.
class ThreadStack {
public:
  ThreadStack() = default;
  explicit ThreadStack(const ShadowStack &stack)
      : stack_(&stack), generation_(stack.generation()) {}
  /// Null once the thread left its stack. [any thread]
  const ShadowStack *get() const noexcept {
    return stack_ && stack_->generation() == generation_ ? stack_ : nullptr;
  }

private:
  const ShadowStack *stack_ = nullptr;
  uint32_t generation_ = 0;
};

/// Sets the stack whose live context is used by threads with an empty stack: that of the thread
/// which started the newest active session. [one thread at a time]
void set_starting_stack(const ThreadStack &thread) noexcept;
const ShadowStack *starting_stack() noexcept;

// Scopes that were open when their thread or task ended: an object elsewhere may still close them.
// And paths that stand on no stack.

/// Keeps those scopes of a thread that objects hold. [any thread, noexcept]
void keep_expired(const std::vector<StackEntry> &entries, uint32_t thread) noexcept;
/// Same with all of a stack, before it is left. [ending thread]
void keep_expired(ShadowStack &stack, uint32_t thread) noexcept;
/// A scope by its number. [any thread]
std::optional<OpenScope> find_expired(uint64_t scope_id);
/// False if it is not kept. [any thread]
bool forget_expired(uint64_t scope_id) noexcept;
/// Keeps a context that stands on the caller's stack, for threads and tasks that begin below it,
/// until as many calls of `release_path`. [any thread, noexcept]
bool hold_path(ContextId id) noexcept;
void release_path(ContextId id) noexcept;
/// Appends the ids that a collection must keep. Call after reading those of the stacks. [any
/// thread]
void append_expired(std::vector<ContextId> &ids);
/// Called in a forked child.
void clear_expired() noexcept;

} // namespace proton
