#include "context/shadow_stack.h"

#include <cstring>
#include <functional>

#include "calltree/context_tree.h"
#include "support/error.h"

namespace proton {
namespace {

std::atomic<const ShadowStack *> g_starting_stack{nullptr};
constexpr std::string_view kMetadataPrefix = "__proton_launch_metadata:";
std::atomic<uint64_t> g_next_scope_id{1};

} // namespace

void set_starting_stack(const ShadowStack *stack) noexcept {
  g_starting_stack.store(stack, std::memory_order_release);
}

const ShadowStack *starting_stack() noexcept {
  return g_starting_stack.load(std::memory_order_acquire);
}

HashedName hashed(std::string_view text) noexcept {
  return {text, std::hash<std::string_view>{}(text)};
}

ShadowStack::~ShadowStack() {
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

ContextId ShadowStack::child(ContextId parent, HashedName name, FrameKind kind,
                             const Situation &now, uint32_t collection) {
  ContextTree &tree = ContextTree::instance();
  is_first_use_ = true;
  if (name.text.size() > kInlineName)
    return tree.child(parent, name.text, kind, now.birth, now.epoch);
  uint64_t slot =
      (name.hash ^ (uint64_t{parent} * 0x9E3779B97F4A7C15ull) ^ static_cast<uint64_t>(kind)) >> 7;
  CacheEntry &cached = cache_[slot % kCacheEntries];
  if (cached.collection == collection && cached.hash == name.hash && cached.parent == parent &&
      cached.birth == now.birth && cached.kind == kind && cached.length == name.text.size() &&
      std::memcmp(cached.text.data(), name.text.data(), name.text.size()) == 0) {
    is_first_use_ = tree.touch(cached.id, now.epoch);
    return cached.id;
  }
  ContextId id = tree.child(parent, name.text, kind, now.birth, now.epoch);
  cached.hash = name.hash;
  cached.parent = parent;
  cached.id = id;
  cached.birth = now.birth;
  cached.collection = collection;
  cached.kind = kind;
  cached.length = static_cast<uint8_t>(name.text.size());
  std::memcpy(cached.text.data(), name.text.data(), name.text.size());
  return id;
}

ContextId ShadowStack::base(const Situation &now) {
  if (depth() != 0)
    return top().id.load(std::memory_order_relaxed);
  const ShadowStack *starting = starting_stack();
  if (!starting || starting == this)
    return 0;
  ContextId id = starting->published();
  if (id != 0)
    ContextTree::instance().touch(id, now.epoch);
  return id;
}

ContextId ShadowStack::with_state(ContextId base, const Situation &now) {
  if (states_.empty())
    return base;
  const State &state = states_.back();
  if (depth() != 0 && top().state_serial == state.serial)
    return base;
  uint32_t collection = ContextTree::instance().collections();
  std::string_view name = state.name;
  if (name.starts_with(kMetadataPrefix)) {
    // Two frames, so that metadata of all kernels stands below one node.
    base = child(base, hashed(kMetadataPrefix.substr(0, kMetadataPrefix.size() - 1)),
                 FrameKind::kState, now, collection);
    name.remove_prefix(kMetadataPrefix.size());
  }
  return child(base, hashed(name), FrameKind::kState, now, collection);
}

ContextId ShadowStack::current(const Situation &now) { return with_state(base(now), now); }

void ShadowStack::publish(const Situation &now) {
  // An empty stack publishes the root: it follows the starting thread, it does not lead others.
  ContextId own = depth() == 0 ? 0 : top().id.load(std::memory_order_relaxed);
  published_.store(now.active ? with_state(own, now) : own, std::memory_order_seq_cst);
}

StackEntry &ShadowStack::push(HashedName name, FrameKind kind, const Situation &now) {
  ContextTree &tree = ContextTree::instance();
  uint32_t collection = tree.collections();
  bool carries_state = kind != FrameKind::kScope && kind != FrameKind::kTest;
  ContextId parent = carries_state ? current(now) : base(now);
  StackEntry &fresh = append();
  fresh.state_serial = depth() != 0 ? top().state_serial : 0;
  if (carries_state && !states_.empty())
    fresh.state_serial = states_.back().serial;
  fresh.id.store(child(parent, name, kind, now, collection), std::memory_order_seq_cst);
  fresh.kind = kind;
  fresh.is_noop = false;
  fresh.is_first_use = is_first_use_;
  fresh.scope_id = g_next_scope_id.fetch_add(1, std::memory_order_relaxed);
  fresh.name_hash = name.hash;
  fresh.start_ns = 0;
  depth_.store(depth() + 1, std::memory_order_seq_cst);
  if (tree.collections() != collection) {
    // A collection began meanwhile and may have freed a cached id before it saw our stack.
    depth_.store(depth() - 1, std::memory_order_relaxed);
    parent = carries_state ? current(now) : base(now);
    fresh.id.store(tree.child(parent, name.text, kind, now.birth, now.epoch),
                   std::memory_order_seq_cst);
    depth_.store(depth() + 1, std::memory_order_seq_cst);
  }
  publish(now);
  return fresh;
}

StackEntry &ShadowStack::push_noop(HashedName name, FrameKind kind) {
  ContextId unchanged = depth() == 0 ? 0 : top().id.load(std::memory_order_relaxed);
  uint32_t serial = depth() == 0 ? 0 : top().state_serial;
  StackEntry &fresh = append();
  fresh.id.store(unchanged, std::memory_order_relaxed);
  fresh.kind = kind;
  fresh.is_noop = true;
  fresh.is_first_use = false;
  fresh.state_serial = serial;
  fresh.scope_id = 0;
  fresh.name_hash = name.hash;
  fresh.start_ns = 0;
  depth_.store(depth() + 1, std::memory_order_release);
  return fresh;
}

bool ShadowStack::pop(const Situation &now) noexcept {
  // Records of this epoch may name the node after it left the stack.
  ContextId id = top().id.load(std::memory_order_relaxed);
  bool is_first_use = id != 0 && ContextTree::instance().touch(id, now.epoch);
  ContextId shown = published_.load(std::memory_order_relaxed);
  if (shown != 0 && shown != id)
    ContextTree::instance().touch(shown, now.epoch);
  depth_.store(depth() - 1, std::memory_order_seq_cst);
  try {
    publish(now);
  } catch (...) { // out of memory for the state's node: fall back to the bare frame
    published_.store(depth() == 0 ? 0 : top().id.load(std::memory_order_relaxed));
  }
  return is_first_use;
}

uint32_t ShadowStack::pop_to(uint32_t target, const Situation &now) noexcept {
  uint32_t closed = 0;
  for (; depth() > target; ++closed)
    pop(now);
  return closed;
}

void ShadowStack::enter_state(std::string_view name, const Situation &now) {
  states_.push_back({std::string(name), next_state_serial_++});
  publish(now);
}

void ShadowStack::exit_state(const Situation &now) {
  if (states_.empty())
    throw Error(ErrorCode::kScope, "exit_state without a matching enter_state on this thread");
  states_.pop_back();
  publish(now);
}

void ShadowStack::append_ids(std::vector<ContextId> &ids) const {
  uint32_t count = depth_.load(std::memory_order_seq_cst);
  for (uint32_t i = 0; i < count; ++i) {
    const StackEntry *block = blocks_[i / kBlockEntries].load(std::memory_order_acquire);
    ids.push_back(block[i % kBlockEntries].id.load(std::memory_order_seq_cst));
  }
  ids.push_back(published());
}

void ShadowStack::clear() noexcept {
  depth_.store(0, std::memory_order_release);
  published_.store(0, std::memory_order_release);
  states_.clear();
}

} // namespace proton
