#include "session/phase_closer.h"

#include <chrono>
#include <exception>

#include "record/device.h"
#include "session/partial_writer.h"
#include "session/session.h"
#include "session/writer_thread.h"
#include "support/clock.h"
#include "writer/file/output_file.h"

namespace proton {
namespace {

/// With what the stream waits until it writes, events are on the disk within two seconds.
constexpr int64_t kHandOver_ns = 500'000'000;

WriterThread &closing_writer() { return WriterThread::instance(); }

} // namespace

PhaseCloser::PhaseCloser(std::shared_ptr<Session> session, ClosingPlan plan)
    : session_(std::move(session)), plan_(std::move(plan)),
      advance_ns_(monotonic_ns() + plan_.interval_ns) {}

std::shared_ptr<PhaseCloser> PhaseCloser::open(std::shared_ptr<Session> session, ClosingPlan plan) {
  auto closer = std::make_shared<PhaseCloser>(std::move(session), std::move(plan));
  closing_writer().add(closer);
  return closer;
}

void PhaseCloser::phase_over() noexcept {
  ++over_;
  closing_writer().wake();
}

bool PhaseCloser::settle(int64_t deadline_ns) {
  uint64_t job =
      closing_writer().push_always([self = shared_from_this()] { self->close_phases(); });
  return closing_writer().wait_for(job, deadline_ns);
}

void PhaseCloser::joined() noexcept { closing_writer().wake(); }

void PhaseCloser::wait_for_room(uint64_t before) {
  ++waits_;
  int64_t deadline_ns = monotonic_ns() + WriterThread::kPatience_ns;
  if (!settle(deadline_ns))
    return;
  std::unique_lock lock(mutex_); // what is complete may wait to be joined
  has_closed_.wait_for(lock, std::chrono::nanoseconds(deadline_ns - monotonic_ns()),
                       [&] { return closed_.load() != before; });
}

void PhaseCloser::close() {
  is_over_.store(true);
  // What it is at now is the last.
  closing_writer().wait_for(closing_writer().push_always([] {}),
                            monotonic_ns() + 10 * WriterThread::kPatience_ns);
  closing_writer().remove(this);
}

std::vector<uint32_t> PhaseCloser::take_written() {
  std::lock_guard lock(mutex_);
  return std::exchange(written_, {});
}

void PhaseCloser::note_written(uint32_t phase) {
  std::lock_guard lock(mutex_);
  written_.push_back(phase);
}

std::string PhaseCloser::error() {
  std::lock_guard lock(mutex_);
  return error_;
}

void PhaseCloser::tick(int64_t now_ns) noexcept {
  if (is_over_.load())
    return;
  try {
    if (plan_.interval_ns > 0 && now_ns >= advance_ns_) {
      advance_ns_ = now_ns + plan_.interval_ns;
      session_->advance_if_recorded();
    }
    if (over_.load() != 0)
      close_phases();
    if (now_ns >= hand_over_ns_) {
      session_->try_hand_over();
      hand_over_ns_ = monotonic_ns() + kHandOver_ns;
    }
  } catch (const std::exception &error) { // no memory: the next time will do
    fail(error.what());
  }
}

void PhaseCloser::close_phases() {
  for (;;) {
    if (is_over_.load())
      return;
    std::optional<ClosedPhase> phase = session_->close_next_phase(plan_.has_trees, plan_.frees);
    if (!phase)
      return;
    --over_;
    if (phase->copy)
      write(*phase->copy);
    {
      std::lock_guard lock(mutex_);
      ++closed_;
    }
    has_closed_.notify_all();
  }
}

void PhaseCloser::write(const PhaseCopy &copy) {
  std::string path = plan_.path + ".part_" + std::to_string(copy.phase) + ".proton";
  try {
    write_file(path, encode_profile(copy.tree, DeviceTable::instance().list(), copy.facts,
                                    FileFormat::kProton));
    note_written(copy.phase);
    PartialWriter::instance().phase_written(*session_, copy.phase);
  } catch (const NotFlushed &error) {
    note_written(copy.phase);
    fail(error.what(), true);
  } catch (const std::exception &error) {
    fail(error.what());
  }
}

void PhaseCloser::fail(const std::string &message, bool is_written) noexcept {
  try {
    std::lock_guard lock(mutex_);
    if (!error_.empty())
      return;
    error_ = message;
    say("warning: " + message +
        (is_written ? "" : "; the recording goes on without what could not be written"));
  } catch (const std::exception &) { // no memory for the message
  }
}

} // namespace proton
