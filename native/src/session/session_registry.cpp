#include "session/session_registry.h"

#include <pthread.h>

#include <algorithm>
#include <string>
#include <utility>

#include "aggregate/consumer/given_values.h"
#include "calltree/context_tree.h"
#include "context/layer/layer_range.h"
#include "context/thread/shadow_stack.h"
#include "context/thread/steps.h"
#include "context/thread/thread_state.h"
#include "record/device.h"
#include "session/partial_writer.h"
#include "support/fork_locks.h"
#include "writer/file/partial_file.h"

namespace proton {
namespace {

using Held = Aggregator::Held;

constexpr uint32_t kMaxGeneration = 0xffffff; // what a SessionState holds

} // namespace

SessionRegistry &SessionRegistry::instance() {
  static SessionRegistry *registry = new SessionRegistry; // the target's threads may need it
  return *registry;
}

std::shared_ptr<Session> SessionRegistry::add(ContextSource source, bool records_wall,
                                              bool keeps_timeline, bool upstream_shape) {
  if (was_forked_in_a_change())
    throw Error(ErrorCode::kUnavailable,
                "this process was forked while a thread of its parent changed what it records, and "
                "that did not end within a second: nothing can be recorded here; start the process "
                "anew (multiprocessing: spawn or forkserver)");
  Held held;
  if (next_generation_ > kMaxGeneration)
    throw Error(ErrorCode::kSession, "more than 16 777 215 sessions were started in this process; "
                                     "use phases of one session instead");
  auto session = std::make_shared<Session>(next_id_, source, next_generation_, records_wall,
                                           keeps_timeline, upstream_shape);
  sessions_.emplace(next_id_, session);
  ++next_id_;
  ++next_generation_;
  return session;
}

std::vector<std::shared_ptr<Session>> SessionRegistry::list() {
  Held held;
  std::vector<std::shared_ptr<Session>> all;
  all.reserve(sessions_.size());
  for (const auto &[id, session] : sessions_)
    all.push_back(session);
  return all;
}

size_t SessionRegistry::active_count() {
  Held held;
  return static_cast<size_t>(std::count_if(sessions_.begin(), sessions_.end(), [&](auto &item) {
    return item.second->is_active(held);
  }));
}

void SessionRegistry::open_epoch(Held &held) {
  EpochPlan plan;
  for (const auto &[id, session] : sessions_)
    session->join(plan, held);
  check_value_types(
      std::any_of(plan.members.begin(), plan.members.end(),
                  [](const EpochMember &each) { return each.tree->has_upstream_shape(); }));
  if (plan.session_state.active)
    held.epochs().begin(std::move(plan.members));
  held.begin_memory();
  plan.session_state.epoch = held.epochs().newest_id();
  set_starting_stack(plan.starting);
  publish_session_state(plan.session_state);
}

void SessionRegistry::look_for_steps() {
  auto following = [&] { // the lock of the steps comes before the aggregator's
    Held held;
    return std::count_if(sessions_.begin(), sessions_.end(),
                         [&](auto &item) { return item.second->follows_steps(held); });
  };
  if (following() == 1)
    follow_steps([](bool is_first) noexcept { instance().begin_window(is_first); });
}

bool SessionRegistry::are_steps_recorded(const Aggregator::Held &held) const {
  return std::any_of(sessions_.begin(), sessions_.end(), [&](auto &item) {
    return item.second->is_active(held) && item.second->follows_steps(held);
  });
}

void SessionRegistry::begin_window(bool is_first) noexcept {
  try {
    Held held;
    for (const auto &[id, session] : sessions_)
      if (session->is_active(held) && session->follows_steps(held))
        session->begin_window(is_first, held);
    open_epoch(held);
  } catch (...) { // no memory: the window before goes on
  }
}

std::shared_ptr<Session> SessionRegistry::forget(int id, const Held &) {
  auto found = sessions_.extract(id);
  return found ? std::move(found.mapped()) : nullptr;
}

Error SessionRegistry::unknown(int id, const Held &) const {
  std::string known;
  for (const auto &[number, session] : sessions_)
    known += (known.empty() ? "" : ", ") + std::to_string(number);
  return Error(ErrorCode::kSession, "Session has not been initialized: " + std::to_string(id) +
                                        "; live sessions: " + (known.empty() ? "none" : known));
}

void SessionRegistry::reset_after_fork() noexcept {
  // The parent's threads do not exist here; its data is copy-on-write and simply abandoned.
  publish_session_state(SessionState{});
  reset_layers_after_fork();
  forget_steps_after_fork();
  set_starting_stack({});
  ContextTree::instance().reset_after_fork();
  if (was_forked_in_a_change()) // and the list of sessions perhaps with it
    return;
  for (const auto &[id, session] : sessions_)
    session->reset_after_fork();
  reset_threads_after_fork();
}

namespace {

void start_child() noexcept {
  unlock_in_child();
  SessionRegistry::instance().reset_after_fork();
  if (was_forked_in_a_change())
    return;
  PartialWriter::instance().reset_after_fork();
  WriterThread::instance().reset_after_fork();
  HeldFiles::instance().reset_after_fork();
}

// Every lock must exist before the first fork: one that is made while another thread forks would
// be missed.
void make_locks() {
  PartialWriter::instance();
  Aggregator::instance();
  WriterThread::instance();
  HeldFiles::instance();
  ContextTree::instance();
  DeviceTable::instance();
  find_variant(-1);
  this_thread();
  forget_expired(0);
  step_marks();
  layer_below(nullptr, "");
  Name("ROOT");
}

} // namespace

void install_fork_handlers() {
  static const bool installed = [] {
    make_locks();
    return pthread_atfork(lock_for_fork, unlock_in_parent, start_child) == 0;
  }();
  static_cast<void>(installed);
}

} // namespace proton
