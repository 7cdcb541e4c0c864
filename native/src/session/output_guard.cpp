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

std::string file_name(const OutputPlan &plan, const SessionCopy &session, const PhaseCopy &phase,
                      const std::string &format) {
  if (plan.path == kStdout)
    return plan.path;
  std::string part = session.has_phases ? ".part_" + std::to_string(phase.phase) : "";
  return plan.path + part + '.' + format;
}

std::string encoded(const PhaseCopy &phase, const std::string &format) {
  return encode_profile(phase.tree, DeviceTable::instance().list(), phase.facts,
                        parse_file_format(format), &phase.timeline);
}

// Whatever goes wrong with one session must not keep the others from being written.
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
  static OutputGuard *guard = new OutputGuard; // outlives the watching thread
  return *guard;
}

void OutputGuard::protect(int session, OutputPlan plan) {
  Lock lock(mutex_);
  entries_[session].plan = std::move(plan);
}

void OutputGuard::expect_parts(int session) {
  Lock lock(mutex_);
  if (auto found = entries_.find(session); found != entries_.end())
    found->second.has_parts = true;
}

void OutputGuard::begin_final(int session) {
  Lock lock(mutex_);
  if (auto found = entries_.find(session); found != entries_.end())
    found->second.is_finalizing = true;
}

void OutputGuard::release(int session, bool is_written) {
  Lock lock(mutex_);
  auto found = entries_.find(session);
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

void OutputGuard::phase_written(int session, uint32_t phase) {
  Lock lock(mutex_);
  auto found = entries_.find(session);
  if (found == entries_.end())
    return;
  if (auto file = found->second.partials->files.extract(phase)) // else `forget_freed` sees to it
    file.mapped().remove();
}

size_t OutputGuard::count() {
  Lock lock(mutex_);
  return entries_.size();
}

std::map<int, OutputGuard::Entry> OutputGuard::entries() {
  Lock lock(mutex_);
  return entries_;
}

WriteReport OutputGuard::write_partials() {
  WriteReport report;
  for (const auto &[session, entry] : entries())
    if (!entry.is_finalizing && entry.plan.path != kStdout)
      attempt(report, [&, id = session] { write_partial(id, entry, report); });
  return report;
}

void OutputGuard::write_partial(int session, const Entry &entry, WriteReport &report) {
  SessionCopy copy;
  if (!SessionRegistry::instance().try_copy(session, monotonic_ns() + kCopyPatience_ns, entry.seen,
                                            copy))
    return; // busy: the next time will do
  forget_freed(session, copy);
  for (PhaseCopy &phase : copy.phases) {
    if (phase.revision == 0)
      continue;
    phase.facts.partial = true;
    OwnFile file = take_partial(*entry.partials, phase.phase);
    try {
      replace_partial(file, partial_path(file_name(entry.plan, copy, phase, "proton")),
                      encoded(phase, "proton"));
    } catch (...) {
      give_back(*entry.partials, phase.phase, std::move(file)); // the older one
      throw;
    }
    std::string path = file.path();
    give_back(*entry.partials, phase.phase, std::move(file));
    Lock lock(mutex_);
    auto found = entries_.find(session);
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

void OutputGuard::forget_freed(int session, const SessionCopy &copy) {
  Lock lock(mutex_);
  auto found = entries_.find(session);
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
    for (const auto &[session, entry] : entries_)
      if (entry.is_finalizing)
        return true;
    return false;
  };
  while (is_busy() && monotonic_ns() < deadline_ns)
    nanosleep(&kPause, nullptr);
}

void OutputGuard::write_trees(int session, const Entry &entry, const SignalEnd &end,
                              WriteReport &report) {
  SessionCopy copy;
  attempt(report, [&] {
    if (!SessionRegistry::instance().try_copy(session, monotonic_ns() + kCopyPatience_ns, {}, copy))
      report.errors.push_back("session " + std::to_string(session) + " is busy");
  });
  for (PhaseCopy &phase : copy.phases) {
    phase.facts.partial = end.goes_on || entry.has_parts;
    phase.facts.provenance = with_signal_facts(phase.facts.provenance, end.signal);
    for (const std::string &format : entry.plan.formats)
      attempt(report, [&] {
        std::string name = file_name(entry.plan, copy, phase, format);
        write_file(name, encoded(phase, format));
        report.files.push_back(name);
      });
  }
}

void OutputGuard::write_timeline(int session, const Entry &entry, const SignalEnd &end,
                                 WriteReport &report) {
  SessionRegistry &sessions = SessionRegistry::instance();
  int64_t deadline_ns = monotonic_ns() + kTimelinePatience_ns;
  // Where the process lives on, the partial files of the timeline are what there is.
  if (!sessions.try_settle(session, deadline_ns, !end.goes_on))
    report.errors.push_back("the timeline of session " + std::to_string(session) +
                            " was not written to its end; its partial files may be read");
  else if (!end.goes_on)
    for (const EndedFile &file : sessions.end_timeline(
             session, {entry.plan.traces, 0, entry.has_parts, false, end.signal}, deadline_ns))
      report.files.push_back(file.path);
}

WriteReport OutputGuard::write_all(const std::string &signal, bool goes_on,
                                   void (*tell)(const WriteReport &)) {
  wait_for_python();
  Turn turn(is_writing_all_);
  WriteReport report;
  const SignalEnd end{signal, goes_on};
  for (const auto &[session, entry] : entries()) {
    if (goes_on && entry.plan.path == kStdout)
      continue;
    if (entry.plan.is_written_meanwhile)
      attempt(report, [&, id = session] { write_timeline(id, entry, end, report); });
    write_trees(session, entry, end, report);
    if (!goes_on && report.errors.empty())
      release(session, true);
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
