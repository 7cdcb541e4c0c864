// The phases of sessions: one follows the other, is cleared, or is written while the program runs.
#include <algorithm>

#include "session/session_registry.h"

namespace proton {
namespace {

using Lock = std::lock_guard<std::mutex>;

std::mutex &guard() { return Aggregator::instance().mutex; }

} // namespace

uint32_t SessionRegistry::advance_phase(int id) {
  uint32_t phase = 0;
  std::shared_ptr<PhaseCloser> closer;
  {
    Lock lock(guard());
    phase = begin_phase(id);
    if (is_closing_behind(id))
      closer = find(id).closer;
  }
  if (closer)
    closer->wait_for_room();
  return phase;
}

uint32_t SessionRegistry::begin_phase(int id) {
  Session &session = find(id);
  session.first_epochs.try_emplace(session.phase, last_epoch_ + 1);
  ++session.phase;
  EpochId epoch = open_epoch();
  session.first_epochs.emplace(session.phase, epoch);
  if (session.stream && session.phase == 1)
    session.stream->number_files();
  if (session.closer)
    session.closer->phase_over();
  return session.phase;
}

uint32_t SessionRegistry::current_phase(int id) {
  Lock lock(guard());
  return find(id).phase;
}

std::vector<uint32_t> SessionRegistry::live_phases(int id) {
  Lock lock(guard());
  std::vector<uint32_t> phases;
  Session &session = find(id);
  for (const auto &[phase, epoch] : session.first_epochs)
    phases.push_back(phase);
  if (phases.empty())
    phases.push_back(session.phase); // never activated
  return phases;
}

bool SessionRegistry::is_phase_complete(int id, uint32_t phase) {
  Lock lock(guard());
  Session &session = find(id);
  if (phase >= session.phase)
    return false;
  Aggregator::instance().drain();
  return is_complete(id, phase);
}

bool SessionRegistry::is_complete(int id, uint32_t phase) {
  for (const auto &[number, epoch] : Aggregator::instance().epochs)
    for (const EpochMember &member : epoch.members)
      if (member.session == id && member.phase == phase && !epoch.counts.is_complete())
        return false;
  return true;
}

void SessionRegistry::drop_phase(int id, uint32_t phase) {
  Session &session = find(id);
  for (auto &[number, epoch] : Aggregator::instance().epochs) {
    auto cleared = [&](const EpochMember &member) {
      return member.session == id && member.phase == phase;
    };
    if (std::erase_if(epoch.members, cleared) == 0)
      continue;
    RecordCounts counts = epoch.counts;
    counts.cleared += counts.outstanding(); // nobody looks when their records come
    session.retired.add(counts);
  }
  session.tree->drop_phase(phase);
  session.first_epochs.erase(phase);
  session.closed.erase(phase);
}

void SessionRegistry::clear_phase(int id, uint32_t phase, bool up_to) {
  Lock lock(guard());
  Session &session = find(id);
  if (!session.first_epochs.contains(phase) && phase != session.phase && !up_to)
    tree(id, phase); // throws, naming the live phases
  Aggregator::instance().drain();
  std::vector<uint32_t> cleared;
  for (const auto &[number, epoch] : session.first_epochs)
    if (number == phase || (up_to && number < phase))
      cleared.push_back(number);
  for (uint32_t number : cleared) {
    if (session.closer && number < session.phase && !session.closed.contains(number))
      session.closer->phase_cleared();
    drop_phase(id, number);
    if (session.stream)
      session.stream->discard_phase(number);
  }
  if (phase >= session.phase) {
    // The current phase goes on, empty; a new epoch keeps late records of the old one out.
    EpochId epoch = open_epoch();
    session.first_epochs.emplace(session.phase, epoch);
  }
  prune();
}

void SessionRegistry::close_phases(int id, ClosingPlan plan) {
  std::shared_ptr<PhaseCloser> closer = PhaseCloser::open(id, std::move(plan));
  Lock lock(guard());
  find(id).closer = std::move(closer);
}

void SessionRegistry::advance_if_recorded(int id) {
  Lock lock(guard());
  auto found = sessions_.find(id);
  if (found == sessions_.end() || !found->second.active)
    return;
  Aggregator::instance().drain();
  if (found->second.tree->revision(found->second.phase) != 0)
    begin_phase(id);
}

bool SessionRegistry::is_closing_behind(int id) {
  Session &session = find(id);
  if (!session.closer || session.first_epochs.size() <= PhaseCloser::kMostBehind)
    return false;
  size_t waiting = 0;
  for (const auto &[phase, epoch] : session.first_epochs)
    waiting += phase < session.phase && !session.closed.contains(phase) && is_complete(id, phase);
  return waiting > PhaseCloser::kMostBehind;
}

std::optional<uint32_t> SessionRegistry::find_finished(int id) {
  Session &session = find(id);
  for (const auto &[phase, epoch] : session.first_epochs) {
    if (phase >= session.phase || session.closed.contains(phase))
      continue;
    if (is_complete(id, phase))
      return phase;
    if (session.stream) // timelines end one after the other
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<ClosedPhase> SessionRegistry::close_next_phase(int id, bool copies, bool frees) {
  Lock lock(guard());
  auto found = sessions_.find(id);
  if (found == sessions_.end())
    return std::nullopt;
  Session &session = found->second;
  Aggregator::instance().drain();
  std::optional<uint32_t> next = find_finished(id);
  if (!next)
    return std::nullopt;
  ClosedPhase closed;
  if (session.stream) {
    session.stream->set_facts(trace_end(session, *next));
    Aggregator::instance().event_book.end_phase({id, session.tree.get(), *next});
  }
  if (copies)
    closed.copy.emplace(copy(session, *next));
  if (!frees) {
    session.closed.insert(*next);
    return closed;
  }
  if (session.stream)
    session.stream->publish_phase(*next);
  drop_phase(id, *next);
  prune();
  return closed;
}

} // namespace proton
