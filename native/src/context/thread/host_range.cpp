#include "context/thread/host_range.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <optional>

#include "calltree/context_tree.h"
#include "calltree/metric_columns.h"
#include "context/python/python_lock.h"
#include "context/thread/shadow_stack.h"
#include "context/thread/steps.h"
#include "context/thread/thread_state.h"
#include "support/tick_clock.h"

namespace proton {
namespace {

std::atomic<uint32_t> g_count_metric{0}; ///< of the newest source

bool is_open(ShadowStack &stack, uint32_t index, uint64_t scope_id) noexcept {
  return index < stack.depth() && stack.entry(index).scope_id() == scope_id &&
         !stack.entry(index).has_ended();
}

} // namespace

void set_count_source(CountSource source, std::string_view metric) {
  if (source)
    g_count_metric = MetricName::of(metric, Aggregation::kInclusive).number;
  g_count_source.store(source, std::memory_order_release);
}

/// Forgets ranges that nothing will end: their counts are those of the ranges around them.
void RangeCounts::close_ended(ShadowStack &stack) noexcept {
  while (!open_.empty() && !is_open(stack, open_.back().index, open_.back().scope_id)) {
    int64_t count = open_.back().count;
    open_.pop_back();
    if (!open_.empty())
      open_.back().count += count;
  }
}

void RangeCounts::take(CountSource source) noexcept {
  int64_t count = 0;
  if (source(count) && !open_.empty())
    open_.back().count += count;
}

void RangeCounts::enter(CountSource source, ShadowStack &stack) noexcept {
  close_ended(stack);
  take(source);
  try {
    open_.push_back({stack.depth() - 1, stack.top().scope_id(), 0});
  } catch (...) { // no memory: the counts stay with the range around it
  }
}

const int64_t *RangeCounts::leave(CountSource source, ShadowStack &stack,
                                  uint64_t scope_id) noexcept {
  close_ended(stack);
  take(source);
  auto range = std::find_if(open_.rbegin(), open_.rend(),
                            [&](const Range &open) { return open.scope_id == scope_id; });
  if (range == open_.rend())
    return nullptr;
  left_ = range->count;
  open_.erase(std::next(range).base());
  return &left_;
}

namespace {

std::atomic<DrainRequest> g_drain_request{nullptr};
std::atomic<ScopeBorder> g_scope_border{nullptr};

RangeRecord record_of(ContextId id, RangeKind kind, EpochId epoch, const RangeTimes &times = {}) {
  RangeRecord record;
  record.at.shadow = id;
  record.at.epoch = epoch;
  record.kind = kind;
  record.end_ns = times.end_ns;
  record.duration_ns = times.duration_ns;
  record.self_ns = times.self_ns;
  return record;
}

// What is counted inside of ranges is rarely asked for: its code stays out of the hot functions.

[[gnu::cold, gnu::noinline]] void begin_counts(ThreadState &thread, CountSource source) noexcept {
  thread.counts.enter(source, thread.stack);
}

/// The top frame was opened for a timed range.
void begin_counts(ThreadState &thread) noexcept {
  if (CountSource source = count_source()) [[unlikely]]
    begin_counts(thread, source);
}

/// Same as `append`, with what `source` counted inside.
[[gnu::cold, gnu::noinline]] bool append_counted(ThreadState &thread, CountSource source,
                                                 const RangeRecord &range,
                                                 uint64_t scope_id) noexcept {
  const int64_t *count = thread.counts.leave(source, thread.stack, scope_id);
  bool chunk_filled = thread.host.append(range);
  if (!count)
    return chunk_filled;
  CountRecord record;
  record.kind = range.kind;
  record.at = range.at;
  record.variant = range.variant;
  record.metric = g_count_metric;
  record.count = *count;
  return thread.host.append(record) || chunk_filled;
}

/// Appends the record of a range whose frame is about to be closed. True as RecordLog::append.
bool append(ThreadState &thread, const RangeRecord &range, uint64_t scope_id) noexcept {
  if (CountSource source = count_source()) [[unlikely]]
    return append_counted(thread, source, range, scope_id);
  return thread.host.append(range);
}

/// Appends the record of a scope of this thread that ends now. True as RecordLog::append.
bool append_scope(ThreadState &thread, const StackEntry &entry, const SessionState &now) noexcept {
  int64_t end_ns = TickClock::now_ns();
  RangeTimes times{end_ns, end_ns - entry.start(), end_ns - entry.start()};
  RangeRecord record = record_of(entry.id.load(), RangeKind::kScope, now.epoch, times);
  record.thread = thread.number;
  return append(thread, record, entry.scope_id());
}

bool is_scope(const StackEntry &entry) {
  return entry.kind == FrameKind::kScope || entry.kind == FrameKind::kTest;
}

bool is_operator(const StackEntry &entry) {
  return entry.kind == FrameKind::kOp || entry.kind == FrameKind::kContextOp;
}

/// Whether a scope other than the one at `index` is open.
bool has_other_scope(ShadowStack &stack, uint32_t index) noexcept {
  for (uint32_t i = 0; i < stack.depth(); ++i) {
    const StackEntry &entry = stack.entry(i);
    if (i != index && is_scope(entry) && !entry.is_noop && !entry.has_ended())
      return true;
  }
  return false;
}

/// Closes the frame and what a library left open above it.
void leave(ShadowStack &stack, uint32_t depth, const SessionState &now) noexcept {
  for (uint32_t i = depth + 1; i < stack.depth(); ++i) {
    const StackEntry &above = stack.entry(i);
    if ((is_scope(above) || is_operator(above)) && !above.has_ended()) {
      stack.entry(depth).set_start(StackEntry::kEnded);
      return;
    }
  }
  stack.pop_to(depth, now);
  stack.pop_ended(now);
}

/// Closes the frame of a range.
void close(ShadowStack &stack, uint32_t depth, const SessionState &now) noexcept {
  if (depth + 1 == stack.depth()) [[likely]] {
    stack.pop(now);
    stack.pop_ended(now);
  } else {
    leave(stack, depth, now);
  }
}

/// The listener may wait for devices and for other threads.
void tell(ScopeBorder border, bool opens) noexcept {
  WithoutPythonLock unlocked;
  border(opens);
}

bool is_on(ShadowStack &stack, const OpenRange &range) {
  return stack.depth() > range.depth && stack.entry(range.depth).scope_id() == range.scope_id;
}

/// The node of the path, stamped with the epoch so that a collection keeps it.
ContextId intern(std::span<const NamedFrame> path, const SessionState &now) {
  ContextTree &tree = ContextTree::instance();
  for (;;) {
    uint32_t collection = tree.settled_collections();
    ContextId id = 0;
    for (const NamedFrame &frame : path) {
      uint32_t generation = frame.generation != 0 ? frame.generation : now.generation;
      id = tree.child_since(collection, id, frame.name.text(), frame.kind, generation, now.epoch,
                            frame.variant);
      if (id == ContextTree::kStale)
        break;
    }
    if (id == ContextTree::kStale)
      continue;
    tree.touch(id, now.epoch);
    if (tree.collections() == collection)
      return id;
  }
}

/// Closes the frame; a timed scope is recorded.
void close_at(ThreadState &thread, uint32_t index, const SessionState &now) noexcept {
  const StackEntry &entry = thread.stack.entry(index);
  ContextId id = entry.id.load(std::memory_order_relaxed);
  bool was_scope = is_scope(entry) && !entry.is_noop;
  int64_t start_ns = entry.start();
  ScopeBorder border = was_scope ? g_scope_border.load(std::memory_order_acquire) : nullptr;
  if (border && !has_other_scope(thread.stack, index)) [[unlikely]]
    tell(border, false); // while the scope still stands
  bool is_timed = start_ns > 0 && now.wants_times;
  bool chunk_filled = is_timed && append_scope(thread, entry, now);
  bool is_first_use = false;
  if (index + 1 == thread.stack.depth()) [[likely]] {
    is_first_use = thread.stack.pop(now);
    thread.stack.pop_ended(now);
  } else {
    is_first_use = thread.stack.end(index, now);
  }
  if (!is_timed && was_scope && is_first_use && now.active)
    chunk_filled = thread.host.append(record_of(id, RangeKind::kSeen, now.epoch));
  if (chunk_filled)
    request_drain();
}

/// Finds the scope on the stack of its thread, which may have ended, and notes it for records of
/// this epoch.
std::optional<OpenScope> find_elsewhere(const HeldScope &scope, const SessionState &now) {
  ContextTree &tree = ContextTree::instance();
  for (;;) {
    uint32_t collection = tree.settled_collections();
    std::optional<OpenScope> found = scope.owner->stack.find_scope(scope.id);
    if (found)
      found->thread = scope.owner->number;
    else
      found = find_expired(scope.id);
    if (!found || !now.active || tree.touch_since(collection, found->id, now.epoch))
      return found;
  }
}

} // namespace

void set_drain_request(DrainRequest request) noexcept {
  g_drain_request.store(request, std::memory_order_release);
}

void set_scope_border(ScopeBorder border) noexcept {
  g_scope_border.store(border, std::memory_order_release);
}

void request_drain() noexcept {
  if (DrainRequest request = g_drain_request.load(std::memory_order_acquire))
    request();
}

[[gnu::hot]] OpenRange enter_range(std::string_view name, FrameKind kind,
                                   int32_t variant) noexcept {
  OpenRange range;
  SessionState now = session_state();
  if (!now.active)
    return range;
  try {
    ThreadState &thread = this_thread();
    range.depth = thread.stack.depth();
    range.scope_id = thread.stack.push(hashed(name, variant), kind, now).scope_id();
    if (kind == FrameKind::kOp || kind == FrameKind::kKernel)
      begin_counts(thread);
  } catch (...) { // no memory or too deep: the time stays with the enclosing range
  }
  return range;
}

[[gnu::hot]] bool exit_range(const OpenRange &range, RangeKind kind, const RangeTimes &times,
                             int32_t variant) noexcept {
  if (!range.is_open())
    return true;
  ThreadState &thread = this_thread();
  SessionState now = session_state();
  if (!is_on(thread.stack, range))
    return !now.active;
  bool chunk_filled = false;
  if (now.active) {
    ContextId id = thread.stack.entry(range.depth).id.load();
    RangeRecord record = record_of(id, kind, now.epoch, times);
    record.at.python = now.wants_python ? capture_current().python : 0;
    record.variant = variant;
    record.thread = thread.number;
    chunk_filled = append(thread, record, range.scope_id);
  }
  close(thread.stack, range.depth, now);
  if (chunk_filled)
    request_drain();
  return true;
}

void exit_timed_range(const OpenRange &range) noexcept {
  ThreadState &thread = this_thread();
  if (!range.is_open() || !is_on(thread.stack, range))
    return;
  SessionState now = session_state();
  const StackEntry &entry = thread.stack.entry(range.depth);
  bool is_timed = entry.start() > 0 && now.wants_times;
  bool chunk_filled = is_timed && append_scope(thread, entry, now);
  close(thread.stack, range.depth, now);
  if (chunk_filled)
    request_drain();
}

void abandon_range(const OpenRange &range) noexcept {
  if (range.is_open() && is_on(this_thread().stack, range))
    leave(this_thread().stack, range.depth, session_state());
}

std::vector<NamedFrame> current_path() {
  std::vector<NamedFrame> path;
  ContextTree &tree = ContextTree::instance(); // what the stack names, it keeps alive
  for (ContextId id = this_thread().stack.own(); id != 0; id = tree.node(id).parent)
    path.push_back(
        {tree.node(id).name, tree.node(id).kind, tree.node(id).generation, tree.node(id).variant});
  std::reverse(path.begin(), path.end());
  return path;
}

void give_number(std::string_view metric, int64_t number) {
  ValueRecord record;
  record.at = capture_current();
  if (record.at.epoch == 0)
    return;
  ThreadState &thread = this_thread();
  record.metric = MetricName::of(metric, Aggregation::kInclusive).number;
  record.thread = thread.number;
  record.integer = number;
  if (thread.host.append(record))
    request_drain();
}

uint64_t newest_kernel_launch() { return this_thread().newest_kernel; }

uint32_t this_thread_number() { return this_thread().number; }

void record_range(std::span<const NamedFrame> path, RangeKind kind, const RangeTimes &times,
                  uint32_t number) noexcept {
  SessionState now = session_state();
  if (!now.active)
    return;
  ThreadState *thread = nullptr;
  bool chunk_filled = false;
  try {
    thread = &this_thread();
    RangeRecord record = record_of(intern(path, now), kind, now.epoch, times);
    record.thread = number;
    chunk_filled = thread->host.append(record);
  } catch (...) { // no memory for the path
    if (thread)
      thread->host.lost.fetch_add(1, std::memory_order_relaxed);
  }
  if (chunk_filled)
    request_drain();
}

StackEntry &open_scope(HashedName name, FrameKind kind, const SessionState &before) {
  ThreadState &thread = this_thread();
  SessionState now = before;
  if (now.wants_steps && kind == FrameKind::kScope) {
    mark_step(StepMark::kScope, name.text);
    now = session_state();
  }
  StackEntry &entry = thread.stack.push(name, kind, now);
  bool is_filled = entry.is_first_use &&
                   thread.host.append(record_of(entry.id.load(), RangeKind::kSeen, now.epoch));
  if (is_filled) // in a program of ever new names no other record may ever ask
    request_drain();
  ScopeBorder border = g_scope_border.load(std::memory_order_acquire);
  if (border && !has_other_scope(thread.stack, thread.stack.depth() - 1)) [[unlikely]]
    tell(border, true);
  if (now.wants_times) {
    begin_counts(thread);
    entry.set_start(TickClock::now_ns());
  }
  return entry;
}

OpenRange enter_scope_range(std::string_view name) noexcept {
  OpenRange range;
  SessionState now = session_state();
  if (!now.active)
    return range;
  try {
    range.depth = this_thread().stack.depth();
    range.scope_id = open_scope(hashed(name), FrameKind::kScope, now).scope_id();
  } catch (...) { // no memory or too deep: what follows stays with the enclosing scope
  }
  return range;
}

bool exit_scope_range(const OpenRange &range) noexcept {
  if (!range.is_open())
    return true;
  ShadowStack &stack = this_thread().stack;
  if (!is_on(stack, range))
    return true; // closed with an enclosing scope
  if (stack.depth() != range.depth + 1)
    return false;
  close_top(session_state());
  return true;
}

void begin_timed_frame(StackEntry &top) noexcept {
  begin_counts(this_thread());
  top.set_start(TickClock::now_ns());
}

void close_frame(uint32_t index, const SessionState &now) noexcept {
  close_at(this_thread(), index, now);
}

void close_top(const SessionState &now) noexcept {
  close_frame(this_thread().stack.depth() - 1, now);
}

std::optional<uint32_t> innermost_of_program() noexcept {
  ShadowStack &stack = this_thread().stack;
  for (uint32_t i = stack.depth(); i-- != 0;) {
    const StackEntry &entry = stack.entry(i);
    bool is_torchs = entry.kind == FrameKind::kLayer || is_operator(entry);
    if (!is_torchs && !entry.has_ended())
      return i;
  }
  return std::nullopt;
}

void close_scope(uint32_t index, const SessionState &now) noexcept {
  ThreadState &thread = this_thread();
  ShadowStack &stack = thread.stack;
  auto is_open_scope = [&](uint32_t i) {
    return is_scope(stack.entry(i)) && !stack.entry(i).has_ended();
  };
  uint32_t held = stack.depth() - 1; // the highest that stays open
  while (held > index && !(stack.entry(held).is_held && is_open_scope(held)))
    --held;
  for (uint32_t i = stack.depth(); i-- > index + 1;) {
    if (is_open_scope(i) && !stack.entry(i).is_held)
      close_at(thread, i, now);
    else if (i > held && i + 1 == stack.depth())
      stack.pop(now); // what a library left open
  }
  close_at(thread, index, now);
}

void close_elsewhere(const HeldScope &scope) noexcept {
  SessionState now = session_state();
  ThreadState *here = nullptr;
  try {
    here = &this_thread();
    std::optional<OpenScope> found = find_elsewhere(scope, now);
    if (found && found->start_ns > 0 && now.wants_times) {
      int64_t end_ns = TickClock::now_ns();
      RangeTimes times{end_ns, end_ns - found->start_ns, end_ns - found->start_ns};
      RangeRecord record = record_of(found->id, RangeKind::kScope, now.epoch, times);
      record.thread = found->thread;
      if (here->host.append(record))
        request_drain();
    }
  } catch (...) { // no memory
    if (here)
      here->host.lost.fetch_add(1, std::memory_order_relaxed);
  }
  if (!forget_expired(scope.id) && scope.owner->stack.find_scope(scope.id))
    scope.owner->stack.end_from_elsewhere(scope.index, scope.id);
}

std::optional<ContextId> context_of_scope(uint64_t scope_id, EpochId epoch) {
  ContextTree &tree = ContextTree::instance();
  for (;;) {
    uint32_t collection = tree.settled_collections();
    std::optional<OpenScope> found;
    for_each_thread([&](ThreadState &thread) {
      if (!found)
        found = thread.stack.find_scope(scope_id);
    });
    if (!found)
      found = find_expired(scope_id);
    if (!found)
      return std::nullopt;
    if (tree.touch_since(collection, found->id, epoch))
      return found->id;
  }
}

void close_operators(const SessionState &now) noexcept {
  ShadowStack &stack = this_thread().stack;
  while (stack.depth() != 0 && is_operator(stack.top()))
    stack.pop(now);
}

} // namespace proton
