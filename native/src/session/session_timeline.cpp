// The timelines of sessions, on their way into files.
#include "session/session_registry.h"
#include "session/signal_facts.h"
#include "support/clock.h"
#include "support/error.h"

namespace proton {
namespace {

using Lock = std::lock_guard<std::mutex>;

constexpr int64_t kHandOverPatience_ns = 100'000'000;

std::mutex &guard() { return Aggregator::instance().mutex; }

} // namespace

void SessionRegistry::stream_timeline(int id, StreamPlan plan) {
  std::shared_ptr<TraceStream> stream = TraceStream::open(std::move(plan));
  Lock lock(guard());
  Session &session = find(id);
  session.stream = std::move(stream);
  session.tree->set_event_sink(session.stream);
}

TraceEnd SessionRegistry::trace_end(Session &session, uint32_t phase, const TimelineEnd &end) {
  auto held = std::make_shared<PhaseCopy>(copy(session, phase));
  held->facts.partial = end.is_partial;
  if (!end.signal.empty())
    held->facts.provenance = with_signal_facts(held->facts.provenance, end.signal);
  // Encoded once, on the writer thread, for all formats.
  auto encode = [held, encoded = std::make_shared<std::string>()]() -> std::string_view {
    try {
      if (encoded->empty())
        *encoded = encode_profile(held->tree, DeviceTable::instance().list(), held->facts,
                                  FileFormat::kProton);
    } catch (const Error &) { // no memory: the slices tell most of it
    }
    return *encoded;
  };
  return {encode, Aggregator::instance().losses[session.id], end.clock_drift_ns, end.is_partial};
}

void SessionRegistry::end_recording(int id) {
  Lock lock(guard());
  Session &session = find(id);
  Aggregator::instance().drain();
  show_open_scopes(session);
  stop(session);
}

void SessionRegistry::show_open_scopes(Session &session) {
  Aggregator::instance().event_book.add_open_scopes(
      {session.id, session.tree.get(), session.phase});
}

void SessionRegistry::hand_over(Session &session) {
  Aggregator::instance().event_book.push({session.id, session.tree.get(), session.phase});
}

void SessionRegistry::try_hand_over(int id) {
  std::unique_lock lock(guard(), std::defer_lock);
  if (!lock_until(lock, monotonic_ns() + kHandOverPatience_ns))
    return;
  auto found = sessions_.find(id);
  if (found == sessions_.end() || !found->second.stream)
    return;
  Aggregator::instance().drain();
  hand_over(found->second);
}

bool SessionRegistry::settle(int id, int64_t deadline_ns, bool is_end) {
  std::unique_lock lock(guard());
  return settle_locked(find(id), lock, deadline_ns, is_end);
}

bool SessionRegistry::try_settle(int id, int64_t deadline_ns, bool is_end) {
  std::unique_lock lock(guard(), std::defer_lock);
  if (!lock_until(lock, deadline_ns))
    return false;
  auto found = sessions_.find(id);
  return found != sessions_.end() && settle_locked(found->second, lock, deadline_ns, is_end);
}

bool SessionRegistry::settle_locked(Session &session, std::unique_lock<std::mutex> &lock,
                                    int64_t deadline_ns, bool is_end) {
  Aggregator::instance().drain();
  std::shared_ptr<PhaseCloser> closer = session.closer;
  std::shared_ptr<TraceStream> stream = session.stream;
  if (is_end && session.active)
    show_open_scopes(session);
  hand_over(session);
  lock.unlock();
  bool is_closed = !closer || closer->settle(deadline_ns);
  return (!stream || stream->catch_up(deadline_ns)) && is_closed;
}

std::vector<EndedFile> SessionRegistry::end_timeline(int id, TimelineEnd end, int64_t deadline_ns) {
  std::shared_ptr<TraceStream> stream;
  std::shared_ptr<PhaseCloser> closer;
  StreamEnd ending;
  {
    Lock lock(guard());
    Session &session = find(id);
    stream = session.stream;
    closer = session.closer;
    for (const auto &[phase, epoch] : session.first_epochs)
      ending.phases.insert(phase);
    if (ending.phases.empty())
      ending.phases.insert(session.phase); // never activated
    for (uint32_t phase : ending.phases)
      if (stream && !session.closed.contains(phase)) {
        stream->set_facts(trace_end(session, phase, end));
        Aggregator::instance().event_book.end_phase({id, session.tree.get(), phase});
      }
  }
  ending.formats = std::move(end.formats);
  ending.hands_over = end.hands_over;
  std::vector<EndedFile> files;
  if (stream)
    files = stream->end(std::move(ending), deadline_ns);
  if (std::string error = closer ? closer->error() : ""; !error.empty())
    throw Error(ErrorCode::kOutput, error);
  return files;
}

StreamCounts SessionRegistry::stream_counts(int id) {
  Lock lock(guard());
  Session &session = find(id);
  StreamCounts counts = session.stream ? session.stream->counts() : StreamCounts();
  if (session.closer)
    counts.waits += session.closer->waits();
  return counts;
}

std::set<TraceFormat> SessionRegistry::streamed_formats(int id) {
  Lock lock(guard());
  Session &session = find(id);
  if (!session.stream)
    return {};
  return {session.stream->formats().begin(), session.stream->formats().end()};
}

} // namespace proton
