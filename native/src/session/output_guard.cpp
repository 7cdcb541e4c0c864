#include "session/output_guard.h"

#include <unistd.h>

#include <ctime>
#include <exception>

#include "record/device.h"
#include "session/signal_facts.h"
#include "support/clock.h"
#include "support/fork_locks.h"
#include "writer/output_file.h"

namespace proton {
namespace {

using Lock = std::lock_guard<std::mutex>;

constexpr int64_t kCopyPatience_ns = 2'000'000'000;
constexpr int64_t kPythonPatience_ns = 2'000'000'000;
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
  if (is_written)
    for (const std::string &partial : found->second.partials)
      unlink(partial.c_str());
  entries_.erase(found);
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
  for (PhaseCopy &phase : copy.phases) {
    if (phase.revision == 0)
      continue;
    phase.facts.partial = true;
    std::string partial = partial_path(file_name(entry.plan, copy, phase, "proton"));
    write_partial_file(partial, encoded(phase, "proton"));
    Lock lock(mutex_);
    auto found = entries_.find(session);
    if (found == entries_.end() || found->second.is_finalizing) {
      // It was finalized meanwhile, and perhaps did not see this file.
      unlink(partial.c_str());
      return;
    }
    found->second.partials.insert(partial);
    found->second.seen[phase.phase] = phase.revision;
    report.files.push_back(std::move(partial));
  }
}

void OutputGuard::wait_for_python() {
  int64_t deadline_ns = monotonic_ns() + kPythonPatience_ns;
  constexpr timespec kPause{0, 5'000'000};
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

WriteReport OutputGuard::write_all(const std::string &signal, bool goes_on) {
  wait_for_python();
  WriteReport report;
  for (const auto &[session, entry] : entries()) {
    if (goes_on && entry.plan.path == kStdout)
      continue;
    SessionCopy copy;
    attempt(report, [&, id = session] {
      if (!SessionRegistry::instance().try_copy(id, monotonic_ns() + kCopyPatience_ns, {}, copy))
        report.errors.push_back("session " + std::to_string(id) + " is busy");
    });
    for (PhaseCopy &phase : copy.phases) {
      phase.facts.partial = goes_on || entry.has_parts;
      phase.facts.provenance = with_signal_facts(phase.facts.provenance, signal);
      for (const std::string &format : entry.plan.formats)
        attempt(report, [&] {
          std::string name = file_name(entry.plan, copy, phase, format);
          write_file(name, encoded(phase, format));
          report.files.push_back(name);
        });
    }
    if (!goes_on && report.errors.empty())
      release(session, true);
  }
  return report;
}

void OutputGuard::reset_after_fork() noexcept { entries_.clear(); }

} // namespace proton
