#include "context/thread/shadow_stack.h"

#include <cstring>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>

#include "calltree/context_tree.h"
#include "support/error.h"
#include "support/fork_locks.h"

namespace proton {

void PathCache::keep(const PathStep &step, ContextId id) noexcept {
  const std::string_view text = step.name.text;
  if (text.size() > kLongestName)
    return;
  if (used_ == kEntries) { // start over: what repeats is found again within one round
    index_.fill(0);
    used_ = 1;
    last_ = 0;
    entries_[0].next = 0;
  }
  uint32_t chosen = slot(step, 0);
  for (uint32_t probe = 0; probe < kProbes; ++probe) {
    uint32_t each = slot(step, probe);
    const Entry &entry = entries_[index_[each]];
    // A free slot, or one whose id is of an earlier collection.
    if (index_[each] == 0 || entry.collection != step.collection) {
      chosen = each;
      break;
    }
  }
  if (index_[chosen] == 0)
    index_[chosen] = used_++;
  Entry &entry = entries_[index_[chosen]];
  entry.hash = step.name.hash;
  entry.parent = step.parent;
  entry.id = id;
  entry.generation = step.generation;
  entry.collection = step.collection;
  entry.variant = step.name.variant;
  entry.kind = step.kind;
  entry.length = static_cast<uint8_t>(text.size());
  std::memcpy(entry.text.data(), text.data(), text.size());
  entry.next = 0;
  use(entry);
}

namespace {

std::atomic<const ShadowStack *> g_starting_stack{nullptr};
constexpr std::string_view kMetadataPrefix = "__proton_launch_metadata:";
constexpr uint64_t kMixer = 0x9E3779B97F4A7C15ull;
constexpr uint64_t kScopeIdBlock = 1024;
std::atomic<uint64_t> g_next_scope_ids{1};

} // namespace

void set_starting_stack(const ThreadStack &thread) noexcept {
  g_starting_stack.store(thread.get(), std::memory_order_seq_cst);
  if (!thread.get()) // it ended meanwhile, perhaps before it could see that it leads
    g_starting_stack.store(nullptr, std::memory_order_seq_cst);
}

const ShadowStack *starting_stack() noexcept {
  return g_starting_stack.load(std::memory_order_acquire);
}

[[gnu::hot]] HashedName hashed(std::string_view text, int32_t variant) noexcept {
  // Our own hash: a call into the standard library costs as much again.
  uint64_t hash = text.size() * kMixer;
  const char *at = text.data();
  size_t left = text.size();
  for (; left >= sizeof(uint64_t); left -= sizeof(uint64_t), at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, at, sizeof(word));
    hash = (hash ^ word) * kMixer;
    hash ^= hash >> 29;
  }
  for (; left != 0; --left, ++at)
    hash = (hash ^ static_cast<unsigned char>(*at)) * kMixer;
  return {text, hash ^ (hash >> 32), variant};
}

StackEntry &StackEntry::operator=(const StackEntry &other) noexcept {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  id.store(other.id.load(kRelaxed), kRelaxed);
  kind = other.kind;
  is_noop = other.is_noop;
  is_first_use = other.is_first_use;
  is_held = other.is_held;
  state_serial = other.state_serial;
  set_scope_id(other.scope_id());
  name_hash = other.name_hash;
  start_ns.store(other.start(), kRelaxed);
  return *this;
}

ShadowStack::~ShadowStack() {
  for (Asked *asked = asked_.load(std::memory_order_relaxed); asked;)
    delete std::exchange(asked, asked->next);
  for (auto &block : blocks_)
    delete[] block.load(std::memory_order_relaxed);
}

StackEntry &ShadowStack::entry(uint32_t index) noexcept {
  return blocks_[index / kBlockEntries].load(std::memory_order_acquire)[index % kBlockEntries];
}

StackEntry &ShadowStack::append() {
  uint32_t index = depth();
  if (index == kBlockEntries * kMaxBlocks)
    throw Error(ErrorCode::kScope, "more than 1 048 576 scopes are open on this thread; "
                                   "an enter_scope without exit_scope in a loop?");
  std::atomic<StackEntry *> &block = blocks_[index / kBlockEntries];
  if (!block.load(std::memory_order_relaxed))
    block.store(new StackEntry[kBlockEntries], std::memory_order_release);
  return entry(index);
}

[[gnu::hot]] uint64_t ShadowStack::next_scope_id() noexcept {
  // In blocks, so that threads do not pass one cache line around at every scope.
  if (next_scope_id_ == scope_ids_end_) {
    next_scope_id_ = g_next_scope_ids.fetch_add(kScopeIdBlock, std::memory_order_relaxed);
    scope_ids_end_ = next_scope_id_ + kScopeIdBlock;
  }
  return next_scope_id_++;
}

ContextId ShadowStack::child(ContextId parent, HashedName name, FrameKind kind,
                             const SessionState &now, uint32_t collection) {
  ContextTree &tree = ContextTree::instance();
  if (parent == ContextTree::kStale)
    return parent;
  PathStep step{parent, name, kind, now.generation, collection};
  ContextId id = known_.find(step);
  if (id != PathCache::kNone) {
    is_first_use_ |= tree.touch(id, now.epoch);
    return id;
  }
  is_first_use_ = true;
  id = tree.child_since(collection, parent, name.text, kind, now.generation, now.epoch,
                        name.variant);
  if (id != ContextTree::kStale)
    known_.keep(step, id);
  return id;
}

ContextId ShadowStack::base() noexcept {
  if (depth() != 0 || empty_base() != 0)
    return own();
  const ShadowStack *starting = starting_stack();
  return starting && starting != this ? starting->published() : 0;
}

bool ShadowStack::lacks_state() noexcept {
  return !states_.empty() && (depth() == 0 || top().state_serial != states_.back().serial);
}

ContextId ShadowStack::with_state(ContextId base, const SessionState &now, uint32_t collection) {
  if (!lacks_state())
    return base;
  std::string_view name = states_.back().name;
  if (name.starts_with(kMetadataPrefix)) {
    // Two frames, so that metadata of all kernels stands below one node.
    base = child(base, hashed(kMetadataPrefix.substr(0, kMetadataPrefix.size() - 1)),
                 FrameKind::kState, now, collection);
    name.remove_prefix(kMetadataPrefix.size());
  }
  return child(base, hashed(name), FrameKind::kState, now, collection);
}

ContextId ShadowStack::current(const SessionState &now) {
  settle(now);
  if (depth() != 0 && !lacks_state())
    return own(); // this stack keeps it, and `pop` stamps it for records
  ContextTree &tree = ContextTree::instance();
  for (;;) {
    uint32_t collection = tree.settled_collections();
    ContextId id = with_state(base(), now, collection);
    if (id == ContextTree::kStale)
      continue;
    if (id != 0)
      tree.touch(id, now.epoch);
    if (tree.collections() == collection)
      return id;
  }
}

void ShadowStack::publish_state(const SessionState &now) noexcept {
  // An empty stack publishes the root: it follows the starting thread and does not lead others.
  ContextId shown = own();
  if (now.active && lacks_state()) {
    ContextTree &tree = ContextTree::instance();
    try {
      for (;;) {
        // The id is held before it is shown, so that a reader never gets a freed one.
        uint32_t collection = tree.settled_collections();
        ContextId id = with_state(own(), now, collection);
        if (id == ContextTree::kStale)
          continue;
        held_.store(id, std::memory_order_seq_cst);
        if (tree.collections() != collection)
          continue;
        shown = id;
        break;
      }
    } catch (...) { // out of memory for the state's node: the bare frame is shown
    }
  }
  published_.store(shown, std::memory_order_release);
  if (held_.load(std::memory_order_relaxed) != 0)
    held_.store(0, std::memory_order_release);
}

[[gnu::hot]] StackEntry *ShadowStack::push_known(HashedName name, FrameKind kind,
                                                 const SessionState &now) noexcept {
  const uint32_t below = depth();
  if (below % kBlockEntries == 0 || !states_.empty() || asked_.load(std::memory_order_relaxed))
    return nullptr;
  ContextTree &tree = ContextTree::instance();
  StackEntry &top = entry(below - 1);
  uint32_t collection = tree.collections(); // odd, which nothing matches, while one is at work
  const ContextId id =
      known_.find({top.id.load(std::memory_order_relaxed), name, kind, now.generation, collection});
  if (id == PathCache::kNone)
    return nullptr;
  tree.prefetch(known_.expected());
  StackEntry &fresh = (&top)[1];
  fresh.is_first_use = tree.touch(id, now.epoch);
  fresh.set_start(0);
  fresh.id.store(id, std::memory_order_release);
  depth_.store(below + 1, std::memory_order_seq_cst);
  if (tree.collections() != collection) {
    depth_.store(below, std::memory_order_release);
    return nullptr;
  }
  fresh.state_serial = top.state_serial;
  fresh.kind = kind;
  fresh.is_noop = false;
  fresh.set_scope_id(next_scope_id());
  fresh.is_held = false;
  fresh.name_hash = name.hash;
  published_.store(id, std::memory_order_release);
  return &fresh;
}

[[gnu::hot]] StackEntry &ShadowStack::push(HashedName name, FrameKind kind,
                                           const SessionState &now) {
  if (StackEntry *known = push_known(name, kind, now))
    return *known;
  settle(now);
  ContextTree &tree = ContextTree::instance();
  const bool carries_state =
      kind != FrameKind::kScope && kind != FrameKind::kTest && kind != FrameKind::kLayer;
  const uint32_t below = depth();
  StackEntry &fresh = append();
  fresh.set_start(0);
  fresh.state_serial = below != 0 ? top().state_serial : 0;
  if (carries_state && !states_.empty())
    fresh.state_serial = states_.back().serial;
  is_first_use_ = false;
  for (;;) {
    uint32_t collection = tree.settled_collections();
    ContextId parent = carries_state ? with_state(base(), now, collection) : base();
    ContextId id = child(parent, name, kind, now, collection);
    if (id == ContextTree::kStale)
      continue;
    fresh.id.store(id, std::memory_order_release);
    depth_.store(below + 1, std::memory_order_seq_cst);
    if (tree.collections() == collection)
      break;
    depth_.store(below, std::memory_order_release);
  }
  fresh.kind = kind;
  fresh.is_noop = false;
  fresh.is_first_use = is_first_use_;
  fresh.set_scope_id(next_scope_id());
  fresh.is_held = false;
  fresh.name_hash = name.hash;
  publish(now);
  return fresh;
}

StackEntry &ShadowStack::push_noop(HashedName name, FrameKind kind) {
  ContextId unchanged = own();
  uint32_t serial = depth() == 0 ? 0 : top().state_serial;
  StackEntry &fresh = append();
  fresh.set_start(0);
  fresh.id.store(unchanged, std::memory_order_relaxed);
  fresh.kind = kind;
  fresh.is_noop = true;
  fresh.is_first_use = false;
  fresh.state_serial = serial;
  fresh.set_scope_id(0);
  fresh.is_held = false;
  fresh.name_hash = name.hash;
  depth_.store(depth() + 1, std::memory_order_release);
  return fresh;
}

uint64_t ShadowStack::number_noop() noexcept {
  if (depth() == 0 || !top().is_noop)
    return 0;
  top().set_scope_id(next_scope_id());
  return top().scope_id();
}

[[gnu::hot]] bool ShadowStack::pop(const SessionState &now) noexcept {
  // Records of this epoch may name the node after it left the stack. A no-op frame has the node of
  // its parent, which is still below.
  const StackEntry &closed = top();
  ContextId id = closed.id.load(std::memory_order_relaxed);
  bool is_first_use = id != 0 && !closed.is_noop && ContextTree::instance().touch(id, now.epoch);
  depth_.store(depth() - 1, std::memory_order_release);
  publish(now);
  return is_first_use;
}

bool ShadowStack::end(uint32_t index, const SessionState &now) noexcept {
  StackEntry &closed = entry(index);
  ContextId id = closed.id.load(std::memory_order_relaxed);
  closed.set_start(StackEntry::kEnded);
  return id != 0 && !closed.is_noop && ContextTree::instance().touch(id, now.epoch);
}

bool ShadowStack::end_from_elsewhere(uint32_t index, uint64_t scope_id) noexcept {
  auto *asked = new (std::nothrow) Asked{index, scope_id, nullptr};
  if (!asked)
    return false;
  asked->next = asked_.load(std::memory_order_relaxed);
  while (!asked_.compare_exchange_weak(asked->next, asked, std::memory_order_release,
                                       std::memory_order_relaxed)) {
  }
  return true;
}

void ShadowStack::take_asked(const SessionState &now) noexcept {
  Asked *asked = asked_.exchange(nullptr, std::memory_order_acquire);
  while (asked) {
    if (find(asked->index, asked->scope_id)) {
      end(asked->index, now);
    } else {
      end_aside(asked->scope_id, now);
      forget_expired(asked->scope_id);
    }
    delete std::exchange(asked, asked->next);
  }
  pop_ended(now);
}

const StackEntry *ShadowStack::find(uint32_t index, uint64_t scope_id) const noexcept {
  if (index >= depth_.load(std::memory_order_acquire))
    return nullptr;
  const StackEntry *block = blocks_[index / kBlockEntries].load(std::memory_order_acquire);
  const StackEntry &found = block[index % kBlockEntries];
  return found.scope_id() == scope_id ? &found : nullptr;
}

uint32_t ShadowStack::pop_to(uint32_t target, const SessionState &now) noexcept {
  uint32_t closed = 0;
  for (; depth() > target; ++closed)
    pop(now);
  return closed;
}

void ShadowStack::enter_state(std::string_view name, const SessionState &now) {
  states_.push_back({std::string(name), next_state_serial_++});
  publish(now);
}

void ShadowStack::exit_state(const SessionState &now) {
  if (states_.empty())
    throw Error(ErrorCode::kScope, "exit_state without a matching enter_state on this thread");
  states_.pop_back();
  publish(now);
}

void ShadowStack::append_ids(std::vector<ContextId> &ids) const {
  std::lock_guard lock(frames_mutex());
  for_each_entry(
      [&](const StackEntry &entry) { ids.push_back(entry.id.load(std::memory_order_acquire)); });
  for (const Frames *frames : frames_)
    ids.push_back(frames->base);
  ids.push_back(base_.load(std::memory_order_seq_cst));
  // The held id first: once it is released, it is published.
  ids.push_back(held_.load(std::memory_order_seq_cst));
  ids.push_back(published());
}

void ShadowStack::append_open(std::vector<OpenScope> &scopes) const {
  std::lock_guard lock(frames_mutex());
  for_each_entry([&](const StackEntry &entry) {
    int64_t start_ns = entry.start_ns.load(std::memory_order_acquire);
    ContextId id = entry.id.load(std::memory_order_acquire);
    // A frame that takes the place meanwhile resets the time first.
    if (start_ns > 0 && entry.start_ns.load(std::memory_order_relaxed) == start_ns)
      scopes.push_back({id, start_ns, kNoThread});
  });
}

std::optional<OpenScope> ShadowStack::find_scope(uint64_t scope_id) {
  std::lock_guard lock(frames_mutex());
  std::optional<OpenScope> scope;
  for_each_entry([&](const StackEntry &entry) {
    if (entry.scope_id() == scope_id)
      scope = OpenScope{entry.id.load(), entry.start(), kNoThread};
  });
  return scope;
}

ContextId ShadowStack::set_base(ContextId base, const SessionState &now) noexcept {
  ContextId before = base_.exchange(base, std::memory_order_seq_cst);
  publish(now);
  return before;
}

std::mutex &ShadowStack::frames_mutex() {
  static std::mutex *mutex = [] {
    auto *made = new std::mutex; // threads of the target may need it to the end
    guard_across_fork(*made, LockRank::kTaskFrames);
    return made;
  }();
  return *mutex;
}

void ShadowStack::add(Frames &frames) {
  frames.place = frames_.size();
  frames_.push_back(&frames);
}

namespace {

/// Records of this epoch may name the frame after it has gone.
void note(const StackEntry &entry, const SessionState &now) noexcept {
  ContextId id = entry.id.load(std::memory_order_relaxed);
  if (id != 0 && !entry.is_noop)
    ContextTree::instance().touch(id, now.epoch);
}

} // namespace

std::vector<StackEntry> ShadowStack::drop(Frames &frames, const SessionState &now) noexcept {
  for (const StackEntry &entry : frames.entries)
    note(entry, now);
  frames_[frames.place] = frames_.back();
  frames_[frames.place]->place = frames.place;
  frames_.pop_back();
  return std::move(frames.entries);
}

/// They may stay among a later thread's, while their contexts live. [lock held]
void ShadowStack::clear_aside() noexcept {
  for (Frames *frames : frames_) {
    frames->entries.clear();
    frames->states.clear();
    frames->base = 0;
  }
}

void ShadowStack::exchange(Frames &from, Frames &to) {
  const uint32_t count = depth();
  from.entries.reserve(count);
  for (size_t first = 0; first < to.entries.size(); first += kBlockEntries)
    if (!blocks_[first / kBlockEntries].load(std::memory_order_relaxed))
      blocks_[first / kBlockEntries].store(new StackEntry[kBlockEntries],
                                           std::memory_order_release);
  for (uint32_t i = 0; i < count; ++i)
    from.entries.push_back(entry(i));
  from.states = std::exchange(states_, std::exchange(to.states, {}));
  from.base = base_.exchange(std::exchange(to.base, 0));
  for (uint32_t i = 0; i < to.entries.size(); ++i)
    entry(i) = to.entries[i];
  depth_.store(static_cast<uint32_t>(to.entries.size()), std::memory_order_seq_cst);
  to.entries.clear();
}

void ShadowStack::end_aside(uint64_t scope_id, const SessionState &now) noexcept {
  std::lock_guard lock(frames_mutex());
  for (Frames *frames : frames_) {
    std::vector<StackEntry> &entries = frames->entries;
    for (StackEntry &entry : entries)
      if (entry.scope_id() == scope_id)
        entry.set_start(StackEntry::kEnded);
    while (!entries.empty() && entries.back().has_ended()) {
      note(entries.back(), now);
      entries.pop_back();
    }
  }
}

void ShadowStack::leave(const SessionState &now) noexcept {
  states_.clear();
  pop_to(0, now);
  {
    std::lock_guard lock(frames_mutex());
    for_each_entry([&](const StackEntry &entry) { note(entry, now); });
    clear_aside();
  }
  base_.store(0, std::memory_order_release);
  publish(now);
  generation_.fetch_add(1, std::memory_order_seq_cst);
  const ShadowStack *self = this;
  g_starting_stack.compare_exchange_strong(self, nullptr, std::memory_order_seq_cst);
}

void ShadowStack::clear() noexcept {
  depth_.store(0, std::memory_order_release);
  published_.store(0, std::memory_order_release);
  held_.store(0, std::memory_order_release);
  base_.store(0, std::memory_order_release);
  states_.clear();
  clear_aside();
}

namespace {

struct Expired {
  Expired() { guard_across_fork(mutex, LockRank::kExpired); }
  std::mutex mutex;
  std::unordered_map<uint64_t, OpenScope> scopes; ///< by number
  std::unordered_map<ContextId, uint32_t> paths;  ///< how often each is held
};

Expired &expired() {
  static Expired *instance = new Expired; // outlives threads of the target
  return *instance;
}

} // namespace

void keep_expired(const std::vector<StackEntry> &entries, uint32_t thread) noexcept {
  if (entries.empty())
    return;
  try {
    Expired &all = expired();
    std::lock_guard lock(all.mutex);
    for (const StackEntry &entry : entries)
      if (entry.is_held && !entry.has_ended())
        all.scopes[entry.scope_id()] = {entry.id.load(), entry.start(), thread};
  } catch (...) { // no memory: they end without a time
  }
}

void keep_expired(ShadowStack &stack, uint32_t thread) noexcept {
  std::vector<StackEntry> entries;
  try {
    std::lock_guard lock(ShadowStack::frames_mutex());
    stack.for_each_entry([&](const StackEntry &entry) { entries.push_back(entry); });
  } catch (...) { // no memory
  }
  keep_expired(entries, thread);
}

bool hold_path(ContextId id) noexcept {
  try {
    Expired &all = expired();
    std::lock_guard lock(all.mutex);
    ++all.paths[id];
    return true;
  } catch (...) { // no memory
    return false;
  }
}

void release_path(ContextId id) noexcept {
  Expired &all = expired();
  std::lock_guard lock(all.mutex);
  auto path = all.paths.find(id);
  if (path != all.paths.end() && --path->second == 0)
    all.paths.erase(path);
}

std::optional<OpenScope> find_expired(uint64_t scope_id) {
  Expired &all = expired();
  std::lock_guard lock(all.mutex);
  auto found = all.scopes.find(scope_id);
  return found == all.scopes.end() ? std::nullopt : std::optional(found->second);
}

bool forget_expired(uint64_t scope_id) noexcept {
  Expired &all = expired();
  std::lock_guard lock(all.mutex);
  return all.scopes.erase(scope_id) != 0;
}

void append_expired(std::vector<ContextId> &ids) {
  Expired &all = expired();
  std::lock_guard lock(all.mutex);
  for (const auto &[number, scope] : all.scopes)
    ids.push_back(scope.id);
  for (const auto &[id, count] : all.paths)
    ids.push_back(id);
}

void clear_expired() noexcept { expired().scopes.clear(); }

} // namespace proton
