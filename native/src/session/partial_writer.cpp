#include "session/partial_writer.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "context/thread/steps.h"
#include "record/device.h"
#include "session/writer_thread.h"
#include "support/clock.h"
#include "support/error.h"
#include "support/fork_locks.h"

namespace proton {
namespace {

using Lock = std::lock_guard<std::mutex>;

constexpr int64_t kCopyPatience_ns = 2'000'000'000;
/// The files take at most one part in so many of the time of one processor.
constexpr int64_t kShare = 20;

std::string file_name(const std::string &path, const SessionCopy &session, const PhaseCopy &phase) {
  std::string part = session.has_phases ? ".part_" + std::to_string(phase.phase) : "";
  return partial_path(path + part + ".proton");
}

std::string encoded(const PhaseCopy &phase) {
  return encode_profile(phase.tree, DeviceTable::instance().list(), phase.facts,
                        FileFormat::kProton);
}

} // namespace

PartialWriter::PartialWriter() { guard_across_fork(mutex_, LockRank::kOutputs); }

PartialWriter &PartialWriter::instance() {
  static auto *writer = new PartialWriter; // its thread may run to the end
  return *writer;
}

void PartialWriter::add(std::shared_ptr<Session> session, std::string path, int64_t interval_ns) {
  Lock life(life_);
  bool is_first = false;
  int id = session->id();
  {
    Lock lock(mutex_);
    is_first = entries_.empty();
    Entry &entry = entries_[id];
    entry.session = std::move(session);
    entry.path = std::move(path);
  }
  if (!is_first)
    return;
  due_ns_ = 0;
  auto interval_ms = static_cast<uint32_t>(std::max<int64_t>(interval_ns / 1'000'000, 1));
  if (thread_ && thread_->start(interval_ms, [this] { tick(); }))
    return;
  Lock lock(mutex_);
  entries_.erase(id);
  throw Error(ErrorCode::kUnavailable,
              "no thread for partial files: the system gives no more; raise its limits, or set "
              "PROTON_BENCH_PARTIAL_INTERVAL_S=0 to do without");
}

void PartialWriter::begin_final(const Session &session) {
  Lock lock(mutex_);
  auto found = entries_.find(session.id());
  if (found == entries_.end() || std::exchange(found->second.is_finalizing, true))
    return;
  ++finalizing_;
}

void PartialWriter::release(const Session &session, bool is_written) {
  Lock life(life_);
  {
    Lock lock(mutex_);
    auto found = entries_.find(session.id());
    if (found == entries_.end())
      return;
    if (found->second.is_finalizing)
      --finalizing_;
    Files &files = *found->second.files;
    files.is_over = true;
    files.is_written = is_written;
    if (is_written)
      for (auto &[phase, file] : files.files)
        file.remove();
    files.files.clear();
    entries_.erase(found);
    if (!entries_.empty())
      return;
  }
  thread_->stop();
}

void PartialWriter::phase_written(const Session &session, uint32_t phase) {
  Lock lock(mutex_);
  auto found = entries_.find(session.id());
  if (found == entries_.end())
    return;
  if (auto file = found->second.files->files.extract(phase)) // else `forget_freed` sees to it
    file.mapped().remove();
}

// Where writing takes long, some rounds are left out.
void PartialWriter::tick() noexcept {
  if (monotonic_ns() < due_ns_)
    return;
  int64_t begin_ns = thread_cpu_ns();
  try {
    Report report = write();
    if (!report.errors.empty() && !std::exchange(has_told_error_, true))
      say("warning: " + report.errors.front());
  } catch (const std::exception &) { // no memory: the next round tries again
  }
  due_ns_ = monotonic_ns() + (thread_cpu_ns() - begin_ns) * kShare;
}

PartialWriter::Report PartialWriter::write() {
  Lock round(round_);
  std::vector<Entry> all;
  {
    Lock lock(mutex_);
    for (const auto &[id, entry] : entries_)
      if (!entry.is_finalizing)
        all.push_back(entry);
  }
  Report report;
  for (const Entry &entry : all)
    try {
      write(entry, report);
    } catch (const std::exception &error) { // the others are written all the same
      report.errors.emplace_back(error.what());
    }
  return report;
}

void PartialWriter::write(const Entry &entry, Report &report) {
  Session &session = *entry.session;
  SessionCopy copy;
  if (!session.try_copy(monotonic_ns() + kCopyPatience_ns, entry.written, copy))
    return; // busy: the next time will do
  forget_freed(session, copy);
  for (PhaseCopy &phase : copy.phases) {
    if (phase.revision == 0)
      continue;
    phase.facts.partial = true;
    phase.facts.so_far = SoFar{unix_ns(), copy.follows_steps ? step_marks() : 0};
    OwnFile file = take(*entry.files, phase.phase);
    try {
      replace_partial(file, file_name(entry.path, copy, phase), encoded(phase));
    } catch (...) {
      give_back(*entry.files, phase.phase, std::move(file)); // the older one
      throw;
    }
    std::string path = file.path();
    give_back(*entry.files, phase.phase, std::move(file));
    Lock lock(mutex_);
    auto found = entries_.find(session.id());
    if (found == entries_.end() || found->second.is_finalizing)
      return; // what is written now goes elsewhere
    found->second.written[phase.phase] = phase.revision;
    report.files.push_back(std::move(path));
  }
}

OwnFile PartialWriter::take(Files &files, uint32_t phase) {
  Lock lock(mutex_);
  return std::move(files.files[phase]);
}

void PartialWriter::give_back(Files &files, uint32_t phase, OwnFile file) {
  Lock lock(mutex_);
  if (!files.is_over)
    files.files[phase] = std::move(file);
  else if (files.is_written)
    file.remove();
}

void PartialWriter::forget_freed(const Session &session, const SessionCopy &copy) {
  Lock lock(mutex_);
  auto found = entries_.find(session.id());
  if (found == entries_.end())
    return;
  std::map<uint32_t, OwnFile> &files = found->second.files->files;
  for (auto item = files.begin(); item != files.end();) {
    if (copy.live.contains(item->first)) {
      ++item;
      continue;
    }
    item->second.remove();
    found->second.written.erase(item->first);
    item = files.erase(item);
  }
}

void PartialWriter::reset_after_fork() noexcept {
  entries_.clear();
  finalizing_ = 0;
  static_cast<void>(thread_.release()); // its locks may be held by threads that are not here
  new (&life_) std::mutex;
  new (&round_) std::mutex;
  try {
    thread_ = std::make_unique<PeriodicThread>();
  } catch (const std::exception &) { // no memory: `add` fails
  }
}

} // namespace proton
