#include "session/output_guard.h"

#include <ctime>
#include <exception>

#include "record/device.h"
#include "session/signal_facts.h"
#include "support/clock.h"
#include "support/fork_locks.h"

namespace proton {
namespace {

using Lock = std::lock_guard<std::mutex>;

constexpr int64_t kCopyPatience_ns = 2'000'000'000;
constexpr int64_t kPythonPatience_ns = 2'000'000'000;
constexpr int64_t kTimelinePatience_ns = 10'000'000'000;
constexpr int64_t kOtherWriterPatience_ns = 10'000'000'000;
constexpr timespec kPause{0, 5'000'000};
constexpr const char *kStdout = "-";

std::string file_name(const OutputPlan &plan, const SessionCopy &session, const PhaseCopy &phase) {
  if (plan.path == kStdout)
    return plan.path;
  std::string part = session.has_phases ? ".part_" + std::to_string(phase.phase) : "";
  return plan.path + part + ".proton";
}

std::string encoded(const PhaseCopy &phase) {
  return encode_profile(phase.tree, DeviceTable::instance().list(), phase.facts,
                        FileFormat::kProton);
}

// A failure of one session must not keep the others from being written.
template <typename Work> void attempt(WriteReport &report, Work &&work) {
  try {
    work();
  } catch (const std::exception &error) {
    report.errors.emplace_back(error.what());
  }
}

// Not a mutex: a fork must not wait until files are written.
class Turn {
public:
  explicit Turn(std::atomic<bool> &is_taken) : is_taken_(is_taken) {
    int64_t deadline_ns = monotonic_ns() + kOtherWriterPatience_ns;
    while (is_taken_.exchange(true) && monotonic_ns() < deadline_ns)
      nanosleep(&kPause, nullptr);
  }
  ~Turn() { is_taken_.store(false); }
  Turn(const Turn &) = delete;
  Turn &operator=(const Turn &) = delete;

private:
  std::atomic<bool> &is_taken_;
};

} // namespace

OutputGuard::OutputGuard() { guard_across_fork(mutex_, LockRank::kOutputs); }

OutputGuard &OutputGuard::instance() {
  static OutputGuard *guard = new OutputGuard; // the watching thread may need it to the end
  return *guard;
}

void OutputGuard::protect(std::shared_ptr<Session> session, OutputPlan plan) {
  Lock lock(mutex_);
  Entry &entry = entries_[session->id()];
  entry.session = std::move(session);
  entry.plan = std::move(plan);
}

void OutputGuard::expect_parts(const Session &session) {
  Lock lock(mutex_);
  if (auto found = entries_.find(session.id()); found != entries_.end())
    found->second.has_parts = true;
}

void OutputGuard::begin_final(const Session &session) {
  Lock lock(mutex_);
  if (auto found = entries_.find(session.id()); found != entries_.end())
    found->second.is_finalizing = true;
}

void OutputGuard::release(const Session &session, bool is_written) {
  Lock lock(mutex_);
  auto found = entries_.find(session.id());
  if (found == entries_.end())
    return;
  Partials &partials = *found->second.partials;
  partials.is_over = true;
  partials.is_written = is_written;
  if (is_written)
    for (auto &[phase, file] : partials.files)
      file.remove();
  partials.files.clear();
  entries_.erase(found);
}

void OutputGuard::phase_written(const Session &session, uint32_t phase) {
  Lock lock(mutex_);
  auto found = entries_.find(session.id());
  if (found == entries_.end())
    return;
  if (auto file = found->second.partials->files.extract(phase)) // else `forget_freed` sees to it
    file.mapped().remove();
}

size_t OutputGuard::count() {
  Lock lock(mutex_);
  return entries_.size();
}

std::vector<OutputGuard::Entry> OutputGuard::entries() {
  Lock lock(mutex_);
  std::vector<Entry> all;
  for (const auto &[id, entry] : entries_)
    all.push_back(entry);
  return all;
}

WriteReport OutputGuard::write_partials() {
  WriteReport report;
  for (const Entry &entry : entries())
    if (!entry.is_finalizing && entry.plan.path != kStdout)
      attempt(report, [&] { write_partial(entry, report); });
  return report;
}

void OutputGuard::write_partial(const Entry &entry, WriteReport &report) {
  Session &session = *entry.session;
  SessionCopy copy;
  if (!session.try_copy(monotonic_ns() + kCopyPatience_ns, entry.seen, copy))
    return; // busy: the next time will do
  forget_freed(session, copy);
  for (PhaseCopy &phase : copy.phases) {
    if (phase.revision == 0)
      continue;
    phase.facts.partial = true;
    OwnFile file = take_partial(*entry.partials, phase.phase);
    try {
      replace_partial(file, partial_path(file_name(entry.plan, copy, phase)), encoded(phase));
    } catch (...) {
      give_back(*entry.partials, phase.phase, std::move(file)); // the older one
      throw;
    }
    std::string path = file.path();
    give_back(*entry.partials, phase.phase, std::move(file));
    Lock lock(mutex_);
    auto found = entries_.find(session.id());
    if (found == entries_.end() || found->second.is_finalizing)
      return; // what is written now goes elsewhere
    found->second.seen[phase.phase] = phase.revision;
    report.files.push_back(std::move(path));
  }
}

OwnFile OutputGuard::take_partial(Partials &partials, uint32_t phase) {
  Lock lock(mutex_);
  return std::move(partials.files[phase]);
}

void OutputGuard::give_back(Partials &partials, uint32_t phase, OwnFile file) {
  Lock lock(mutex_);
  if (!partials.is_over)
    partials.files[phase] = std::move(file);
  else if (partials.is_written)
    file.remove();
}

void OutputGuard::forget_freed(const Session &session, const SessionCopy &copy) {
  Lock lock(mutex_);
  auto found = entries_.find(session.id());
  if (found == entries_.end())
    return;
  std::map<uint32_t, OwnFile> &files = found->second.partials->files;
  for (auto item = files.begin(); item != files.end();) {
    if (copy.live.contains(item->first)) {
      ++item;
      continue;
    }
    item->second.remove();
    found->second.seen.erase(item->first);
    item = files.erase(item);
  }
}

void OutputGuard::wait_for_python() {
  int64_t deadline_ns = monotonic_ns() + kPythonPatience_ns;
  auto is_busy = [this] {
    Lock lock(mutex_);
    for (const auto &[id, entry] : entries_)
      if (entry.is_finalizing)
        return true;
    return false;
  };
  while (is_busy() && monotonic_ns() < deadline_ns)
    nanosleep(&kPause, nullptr);
}

void OutputGuard::write_trees(const Entry &entry, const SignalEnd &end, WriteReport &report) {
  SessionCopy copy;
  if (!entry.plan.has_trees)
    return;
  attempt(report, [&] {
    if (!entry.session->try_copy(monotonic_ns() + kCopyPatience_ns, {}, copy))
      report.errors.push_back("session " + std::to_string(entry.session->id()) + " is busy");
  });
  for (PhaseCopy &phase : copy.phases) {
    phase.facts.partial = end.goes_on || entry.has_parts;
    phase.facts.provenance = with_signal_facts(phase.facts.provenance, end.signal);
    attempt(report, [&] {
      std::string name = file_name(entry.plan, copy, phase);
      write_file(name, encoded(phase));
      report.files.push_back(name);
    });
  }
}

void OutputGuard::write_timeline(const Entry &entry, const SignalEnd &end, WriteReport &report) {
  Session &session = *entry.session;
  int64_t deadline_ns = monotonic_ns() + kTimelinePatience_ns;
  // Where the process lives on, the partial files of the timeline are what there is.
  if (!session.try_settle(deadline_ns, !end.goes_on))
    report.errors.push_back("the timeline of session " + std::to_string(session.id()) +
                            " was not written to its end; its partial files may be read");
  else if (!end.goes_on)
    for (const EndedFile &file : session.end_timeline(
             {entry.plan.traces, 0, entry.has_parts, false, end.signal}, deadline_ns))
      report.files.push_back(file.path);
}

WriteReport OutputGuard::write_all(const std::string &signal, bool goes_on,
                                   void (*tell)(const WriteReport &)) {
  wait_for_python();
  Turn turn(is_writing_all_);
  WriteReport report;
  const SignalEnd end{signal, goes_on};
  for (const Entry &entry : entries()) {
    if (goes_on && entry.plan.path == kStdout)
      continue;
    if (entry.plan.is_written_meanwhile)
      attempt(report, [&] { write_timeline(entry, end, report); });
    write_trees(entry, end, report);
    if (!goes_on && report.errors.empty())
      release(*entry.session, true);
  }
  if (tell)
    tell(report);
  return report;
}

void OutputGuard::reset_after_fork() noexcept {
  entries_.clear();
  is_writing_all_.store(false);
}

} // namespace proton
