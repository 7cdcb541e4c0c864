// Writes the files of sessions when Python cannot: after a signal, and from time to time, because
// the process may be killed.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "session/session.h"
#include "writer/file/partial_file.h"

namespace proton {

/// Where a session's files go.
struct OutputPlan {
  std::string path;                  ///< absolute, without suffix; "-" is standard output
  bool has_trees = false;            ///< phases are written as `.proton`
  std::vector<TraceFormat> traces{}; ///< of the session's timeline, which is written all the time
  bool is_written_meanwhile = false; ///< the session has a timeline in files, or closes phases
};

/// What a watching thread wrote.
struct WriteReport {
  std::vector<std::string> files;
  std::vector<std::string> errors;
};

/// [any thread] No file is written under a lock.
class OutputGuard {
public:
  static OutputGuard &instance();

  void protect(std::shared_ptr<Session> session, OutputPlan plan);
  /// Other processes record for the session too, and only Python can add what they wrote: until the
  /// end all that is written here is marked partial.
  void expect_parts(const Session &session);
  /// Python begins to write the session's files itself.
  void begin_final(const Session &session);
  /// The session is over. The files of `write_partials` are removed where `is_written`.
  void release(const Session &session, bool is_written);
  /// The phase was written whole: its partial file is removed.
  void phase_written(const Session &session, uint32_t phase);
  size_t count();

  /// Writes what is new in each session as NAME.partial.proton.
  WriteReport write_partials();
  /// Waits, two seconds at most, until Python has written what it began to write.
  void wait_for_python();
  /// Writes every file of every session, as the end of the session would. Only one thread does so;
  /// others wait for it, ten seconds at most.
  ///   signal: name for the provenance; empty: the process ends without one.
  ///   goes_on: the process lives on, so the files are marked partial and written anew at its end;
  ///     nothing goes to standard output.
  ///   tell: called with the report before the next thread has its turn.
  WriteReport write_all(const std::string &signal, bool goes_on,
                        void (*tell)(const WriteReport &) = nullptr);

  /// In a forked child: the files are the parent's.
  void reset_after_fork() noexcept;

private:
  /// The files of `write_partials` of one session. While one is written, its writer has it.
  struct Partials {
    std::map<uint32_t, OwnFile> files; ///< by phase
    bool is_over = false;              ///< the session was released
    bool is_written = false;           ///< and its files are whole
  };
  struct Entry {
    std::shared_ptr<Session> session;
    OutputPlan plan;
    bool is_finalizing = false;
    bool has_parts = false;
    std::map<uint32_t, uint64_t> seen; ///< revision of each phase in its partial file
    std::shared_ptr<Partials> partials = std::make_shared<Partials>();
  };

  /// Why everything is written.
  struct SignalEnd {
    std::string signal;
    bool goes_on = false;
  };

  OutputGuard();
  std::vector<Entry> entries();
  static void write_trees(const Entry &entry, const SignalEnd &end, WriteReport &report);
  static void write_timeline(const Entry &entry, const SignalEnd &end, WriteReport &report);
  /// Removes partial files of phases that were written whole, or cleared.
  void forget_freed(const Session &session, const SessionCopy &copy);
  void write_partial(const Entry &entry, WriteReport &report);
  OwnFile take_partial(Partials &partials, uint32_t phase);
  void give_back(Partials &partials, uint32_t phase, OwnFile file);

  std::mutex mutex_;
  std::map<int, Entry> entries_; ///< by number of the session, so the oldest comes first
  std::atomic<bool> is_writing_all_{false};
};

} // namespace proton
