#include "context/thread/task_stacks.h"

#include <mutex>
#include <utility>

#include "context/thread/thread_state.h"

namespace proton {
namespace {

std::atomic<const TaskSource *> g_source{nullptr};

using Lock = std::lock_guard<std::mutex>;

} // namespace

void set_task_source(const TaskSource *source) noexcept {
  g_source.store(source, std::memory_order_release);
}

TaskStacks::Task &TaskStacks::task_of(const TaskSource &source, const void *context) noexcept {
  for (; context; context = source.around(context))
    if (auto place = tasks_.find(context); place != tasks_.end())
      return *place->second;
  return home_;
}

void TaskStacks::put_on_stack(ThreadState &thread, Task &task, std::vector<StackEntry> &left) {
  if (on_stack_ == &task)
    return;
  if (CountSource source = count_source()) [[unlikely]]
    thread.counts.take(source);
  thread.stack.exchange(on_stack_->frames, task.frames);
  on_stack_->counts = std::exchange(thread.counts, std::exchange(task.counts, {}));
  on_stack_ = &task;
  if (gone_)
    left = thread.stack.drop(gone_->frames, session_state());
  gone_.reset();
  are_there_.store(!tasks_.empty(), std::memory_order_relaxed);
}

void TaskStacks::follow(ThreadState &thread) noexcept {
  const TaskSource *source = g_source.load(std::memory_order_acquire);
  if (!source)
    return;
  RunningContext running = source->running();
  if (running.version == followed_)
    return;
  std::vector<StackEntry> left;
  try {
    Lock lock(ShadowStack::frames_mutex());
    put_on_stack(thread, task_of(*source, running.context), left);
    followed_ = running.version;
  } catch (...) { // no memory
  }
  keep_expired(left, thread.number);
  thread.stack.publish(session_state());
}

bool TaskStacks::has(const void *context) const {
  Lock lock(ShadowStack::frames_mutex());
  return tasks_.contains(context);
}

void TaskStacks::add(ThreadState &thread, const void *context, ContextId base,
                     const References &references) {
  auto task = std::make_unique<Task>();
  task->context = context;
  task->frames.base = base;
  task->references = references;
  ShadowStack::Frames &frames = task->frames;
  {
    Lock lock(ShadowStack::frames_mutex());
    if (!knows_home_)
      thread.stack.add(home_.frames);
    knows_home_ = true;
    auto place = tasks_.emplace(context, std::move(task)).first;
    try {
      thread.stack.add(frames);
    } catch (...) {
      tasks_.erase(place);
      throw;
    }
    are_there_.store(true, std::memory_order_relaxed);
  }
  followed_ = kNoVersion;
  follow(thread);
}

TaskStacks::References TaskStacks::take_out(ThreadState &thread, const void *context,
                                            std::vector<StackEntry> &left) noexcept {
  auto place = tasks_.find(context);
  if (place == tasks_.end())
    return {};
  Task &task = *place->second;
  References references = std::exchange(task.references, {});
  if (&task == on_stack_) {
    task.context.store(nullptr);
    gone_ = std::move(place->second);
  } else {
    left = thread.stack.drop(task.frames, session_state());
  }
  tasks_.erase(place);
  are_there_.store(!tasks_.empty() || gone_, std::memory_order_relaxed);
  return references;
}

TaskStacks::References TaskStacks::drop(ThreadState &thread, const void *context) noexcept {
  std::vector<StackEntry> left;
  References references;
  {
    Lock lock(ShadowStack::frames_mutex());
    references = take_out(thread, context, left);
  }
  keep_expired(left, thread.number);
  return references;
}

TaskStacks::References TaskStacks::drop_empty(ThreadState &thread) noexcept {
  References references;
  std::vector<StackEntry> none;
  {
    Lock lock(ShadowStack::frames_mutex());
    const bool is_empty = thread.stack.depth() == 0 && thread.stack.state_depth() == 0;
    if (is_empty && !on_stack_->references.inherited)
      references = take_out(thread, on_stack(), none);
  }
  if (references.watch) {
    renew();
    follow(thread);
  }
  return references;
}

} // namespace proton
