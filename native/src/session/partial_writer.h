// Writes what sessions recorded so far every few seconds, because the process may be killed.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "session/session.h"
#include "support/periodic_thread.h"
#include "writer/file/partial_file.h"

namespace proton {

/// [any thread] No file is written under a lock that a session needs.
class PartialWriter {
public:
  struct Report {
    std::vector<std::string> files;
    std::vector<std::string> errors;
  };
  static PartialWriter &instance();

  /// From now on what is new in the session is written as NAME.partial.proton, by a thread that
  /// runs as long as there are such sessions. `path` is absolute and without suffix; the interval
  /// is that of the first of them. Throws Error(kUnavailable) where no thread can be started.
  void add(std::shared_ptr<Session> session, std::string path, int64_t interval_ns);
  /// The session's files are being written: none that is partial is begun meanwhile.
  void begin_final(const Session &session);
  /// The session is over. Its partial files are removed where `is_written`.
  void release(const Session &session, bool is_written);
  /// The phase was written whole: its partial file is removed.
  void phase_written(const Session &session, uint32_t phase);

  /// Whether the files of a session are being written. [handlers of signals too]
  bool is_any_finalizing() const noexcept { return finalizing_.load() != 0; }
  /// Writes what is new in each session.
  Report write();

  /// In a forked child: the files and the thread are the parent's.
  void reset_after_fork() noexcept;

private:
  /// The files of one session. While one is written, its writer has it.
  struct Files {
    std::map<uint32_t, OwnFile> files; ///< by phase
    bool is_over = false;              ///< the session was released
    bool is_written = false;           ///< and its files are whole
  };
  struct Entry {
    std::shared_ptr<Session> session;
    std::string path;
    bool is_finalizing = false;
    std::map<uint32_t, uint64_t> written; ///< revision of each phase in its file
    std::shared_ptr<Files> files = std::make_shared<Files>();
  };

  PartialWriter();
  void tick() noexcept;
  /// Removes files of phases that were written whole, or cleared.
  void forget_freed(const Session &session, const SessionCopy &copy);
  void write(const Entry &entry, Report &report);
  OwnFile take(Files &files, uint32_t phase);
  void give_back(Files &files, uint32_t phase, OwnFile file);

  std::mutex round_; ///< of `write`; taken before all others
  std::mutex life_;  ///< of the thread; taken before `mutex_`
  std::unique_ptr<PeriodicThread> thread_ = std::make_unique<PeriodicThread>();
  int64_t due_ns_ = 0; ///< of that thread
  bool has_told_error_ = false;

  std::mutex mutex_;
  std::map<int, Entry> entries_; ///< by number of the session
  std::atomic<uint32_t> finalizing_{0};
};

} // namespace proton
