#include "session/session_registry.h"

#include <algorithm>
#include <ctime>

#include "calltree/context_tree.h"
#include "context/thread/expired_scopes.h"
#include "context/thread/graph_capture.h"
#include "context/thread/thread_state.h"
#include "support/clock.h"
#include "support/error.h"
#include "support/fork_locks.h"
#include "support/tick_clock.h"
#include "writer/tree/hatchet_writer.h"

namespace proton {
namespace {

using Lock = std::lock_guard<std::mutex>;

constexpr uint32_t kMaxBirth = 0xffffff; // what a Situation holds

std::mutex &guard() { return Aggregator::instance().mutex; }

} // namespace

SessionRegistry &SessionRegistry::instance() {
  static SessionRegistry *registry = new SessionRegistry; // outlives threads of the target
  return *registry;
}

SessionRegistry::Session &SessionRegistry::find(int id) {
  auto found = sessions_.find(id);
  if (found != sessions_.end())
    return found->second;
  std::string known;
  for (const auto &[number, session] : sessions_)
    known += (known.empty() ? "" : ", ") + std::to_string(number);
  throw Error(ErrorCode::kSession, "Session has not been initialized: " + std::to_string(id) +
                                       "; live sessions: " + (known.empty() ? "none" : known));
}

int SessionRegistry::add(const std::string &name, ContextSource source, bool records_wall,
                         bool keeps_timeline, bool upstream_shape) {
  if (was_forked_in_a_change())
    throw Error(ErrorCode::kUnavailable,
                "this process was forked while a thread of its parent changed what it records, and "
                "that did not end within a second: nothing can be recorded here; start the process "
                "anew (multiprocessing: spawn or forkserver)");
  Lock lock(guard());
  if (next_birth_ > kMaxBirth)
    throw Error(ErrorCode::kSession, "more than 16 777 215 sessions were started in this process; "
                                     "use phases of one session instead");
  int id = next_id_++;
  Session &session = sessions_[id];
  session.id = id;
  session.name = name;
  session.tree = std::make_unique<SessionTree>(source, next_birth_++, records_wall, keeps_timeline,
                                               upstream_shape);
  session.starting_thread = ThreadStack(this_thread().stack);
  return id;
}

EpochId SessionRegistry::open_epoch() {
  Aggregator &aggregator = Aggregator::instance();
  Situation next;
  ThreadStack starting; // of the newest session whose thread still runs
  Epoch epoch;
  for (auto &[number, session] : sessions_) {
    if (!session.active)
      continue;
    next.active = true;
    next.birth = std::max(next.birth, session.tree->birth());
    next.wants_python |= session.tree->source() == ContextSource::kPython;
    next.wants_times |= session.tree->wants_times();
    next.wants_timeline |= session.tree->events() != nullptr;
    if (session.starting_thread.get())
      starting = session.starting_thread;
    epoch.members.push_back({number, session.tree.get(), session.phase});
  }
  // A pause ends no epoch: a session that pauses at every step would need memory for each.
  auto newest = aggregator.epochs.find(last_epoch_);
  bool goes_on = newest != aggregator.epochs.end() && newest->second.members == epoch.members;
  if (next.active && !goes_on)
    aggregator.epochs.emplace(++last_epoch_, std::move(epoch));
  next.epoch = last_epoch_;
  set_starting_stack(starting);
  publish_situation(next);
  return last_epoch_;
}

void SessionRegistry::activate(int id) {
  Lock lock(guard());
  Session &session = find(id);
  if (session.active)
    return;
  session.active = true;
  session.tree->resume(monotonic_ns());
  EpochId epoch = open_epoch();
  session.first_epochs.try_emplace(session.phase, epoch);
}

void SessionRegistry::deactivate(int id) {
  Lock lock(guard());
  stop(find(id));
}

void SessionRegistry::stop(Session &session) {
  if (!session.active)
    return;
  session.active = false;
  session.tree->pause(monotonic_ns());
  open_epoch();
}

void SessionRegistry::remove(int id) {
  std::shared_ptr<PhaseCloser> closer;
  std::shared_ptr<TraceStream> stream;
  {
    Lock lock(guard());
    Session &session = find(id);
    closer = session.closer;
    stream = session.stream;
    forget(id);
  }
  // Their thread may wait for the lock.
  if (closer)
    closer->close();
  if (stream)
    stream->close();
}

void SessionRegistry::forget(int id) {
  Session &session = find(id);
  Aggregator &aggregator = Aggregator::instance();
  if (session.active) {
    session.active = false;
    open_epoch();
  }
  aggregator.drain();
  for (auto &[number, epoch] : aggregator.epochs)
    std::erase_if(epoch.members, [&](const EpochMember &member) { return member.session == id; });
  aggregator.losses.erase(id);
  sessions_.erase(id);
  prune();
}

bool SessionRegistry::exists(int id) {
  Lock lock(guard());
  return sessions_.contains(id);
}

bool SessionRegistry::is_active(int id) {
  Lock lock(guard());
  return find(id).active;
}

size_t SessionRegistry::active_count() {
  Lock lock(guard());
  return static_cast<size_t>(std::count_if(sessions_.begin(), sessions_.end(),
                                           [](const auto &item) { return item.second.active; }));
}

ContextSource SessionRegistry::source(int id) {
  Lock lock(guard());
  return find(id).tree->source();
}

uint32_t SessionRegistry::context_depth(int id) {
  Lock lock(guard());
  uint32_t birth = find(id).tree->birth();
  ShadowStack &stack = this_thread().stack;
  uint32_t depth = 0;
  for (uint32_t i = 0; i < stack.depth(); ++i) {
    StackEntry &entry = stack.entry(i);
    if (!entry.is_noop && ContextTree::instance().node(entry.id.load()).birth >= birth)
      ++depth;
  }
  return depth;
}

void SessionRegistry::set_provenance(int id, std::string encoded) {
  Lock lock(guard());
  find(id).provenance = std::move(encoded);
}

std::map<std::string, uint64_t> SessionRegistry::losses(int id) {
  Lock lock(guard());
  find(id);
  return Aggregator::instance().losses[id];
}

RecordCounts SessionRegistry::counts(int id) {
  Lock lock(guard());
  RecordCounts total = find(id).retired;
  for (const auto &[number, epoch] : Aggregator::instance().epochs)
    for (const EpochMember &member : epoch.members)
      if (member.session == id)
        total.add(epoch.counts);
  return total;
}

void SessionRegistry::add_metrics(const Capture &at, const std::vector<UserMetric> &metrics) {
  if (is_capturing()) { // nothing runs now; each launch of the graph adds them
    open_capture()->add_metrics(Aggregator::instance().graph_book.captured(at, metrics));
    return;
  }
  for (const UserMetric &metric : metrics)
    if (metric.on_device)
      throw Error(ErrorCode::kMetric, "metric '" + metric.metric->text +
                                          "' is left by a graph, but none is being captured");
  Aggregator::give(at, metrics, situation().wants_timeline);
}

void SessionRegistry::add_counters(const std::vector<EventCounter> &counters) {
  Lock lock(guard());
  for (auto &[id, session] : sessions_)
    if (SessionEvents *events = session.active ? session.tree->events() : nullptr)
      events->add(session.phase, counters);
}

void SessionRegistry::drain() {
  Lock lock(guard());
  Aggregator::instance().drain();
}

const CallPathTree &SessionRegistry::tree(int id, uint32_t phase) {
  Session &session = find(id);
  if (session.first_epochs.contains(phase) || phase == session.phase)
    return session.tree->tree(phase);
  std::string live;
  for (const auto &[number, epoch] : session.first_epochs)
    live += (live.empty() ? "" : ", ") + std::to_string(number);
  throw Error(ErrorCode::kSession, "Phase " + std::to_string(phase) + " has no data in session " +
                                       std::to_string(id) + "; live phases: " + live);
}

std::string SessionRegistry::encode(int id, uint32_t phase, FileFormat format) {
  std::optional<PhaseCopy> copy; // others go on while it is encoded
  {
    Lock lock(guard());
    Aggregator::instance().drain();
    tree(id, phase); // throws where there is no such phase
    copy.emplace(this->copy(find(id), phase));
  }
  return encode_profile(copy->tree, DeviceTable::instance().list(), copy->facts, format,
                        &copy->timeline);
}

PhaseCopy SessionRegistry::copy(Session &session, uint32_t phase) {
  const CallPathTree &wanted = session.tree->tree(phase);
  FileFacts facts;
  facts.provenance = session.provenance;
  facts.upstream_shape = session.tree->has_upstream_shape();
  facts.dropped = Aggregator::instance().losses[session.id];
  uint64_t cold = wanted.metrics().cold_distributions();
  if (cold != 0)
    facts.dropped["distributions reduced to moments"] += cold;
  return {phase, session.tree->revision(phase), wanted.copy_for_writing(), std::move(facts),
          session.tree->timeline(phase)};
}

bool SessionRegistry::lock_until(std::unique_lock<std::mutex> &lock, int64_t deadline_ns) {
  for (constexpr timespec kPause{0, 100'000}; !lock.try_lock();) {
    if (monotonic_ns() >= deadline_ns)
      return false;
    nanosleep(&kPause, nullptr);
  }
  return true;
}

bool SessionRegistry::try_copy(int id, int64_t deadline_ns,
                               const std::map<uint32_t, uint64_t> &seen, SessionCopy &out) {
  std::unique_lock lock(guard(), std::defer_lock);
  if (!lock_until(lock, deadline_ns))
    return false;
  auto found = sessions_.find(id);
  if (found == sessions_.end())
    return false;
  Aggregator::instance().drain();
  Session &session = found->second;
  out.has_phases = session.phase > 0;
  for (const auto &[phase, epoch] : session.first_epochs) {
    out.live.insert(phase);
    auto known = seen.find(phase);
    uint64_t revision = session.tree->revision(phase);
    if (known != seen.end() && known->second == revision)
      continue;
    out.phases.push_back(copy(session, phase));
  }
  return true;
}

bool SessionRegistry::folds_in_hatchet(int id, uint32_t phase) {
  Lock lock(guard());
  Aggregator::instance().drain();
  return proton::folds_in_hatchet(tree(id, phase));
}

void SessionRegistry::prune() {
  Aggregator &aggregator = Aggregator::instance();
  std::erase_if(aggregator.epochs, [](const auto &item) { return item.second.members.empty(); });
  std::vector<EpochId> live_epochs;
  live_epochs.reserve(aggregator.epochs.size());
  for (const auto &[number, epoch] : aggregator.epochs)
    live_epochs.push_back(number);
  aggregator.launches.forget_except(live_epochs);
  ContextTree::instance().collect(live_epochs, [&](std::vector<ContextId> &roots) {
    for_each_thread([&](ThreadState &thread) { thread.stack.append_ids(roots); });
    append_expired(roots);
    aggregator.graph_book.append_ids(roots);
  });
}

void SessionRegistry::reset_after_fork() noexcept {
  // The parent's threads do not exist here; its data is copy-on-write and simply abandoned.
  publish_situation(Situation{});
  set_starting_stack({});
  ContextTree::instance().reset_after_fork();
  if (was_forked_in_a_change()) // and the list of sessions perhaps with it
    return;
  for (auto &[number, session] : sessions_) {
    session.active = false;
    if (session.stream)
      session.stream->abandon();
  }
  reset_threads_after_fork();
}

} // namespace proton
