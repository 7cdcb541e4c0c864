// The files of sessions that must be written also when Python cannot: after a signal, and from
// time to time for the case that the process is killed.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "session/session_registry.h"

namespace proton {

/// Where a session's files go.
struct OutputPlan {
  std::string path;                 ///< absolute, without suffix; "-" is standard output
  std::vector<std::string> formats; ///< names that parse_file_format takes; also the suffixes
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

  void protect(int session, OutputPlan plan);
  /// Other processes record for the session too, and only Python can add what they wrote: until the
  /// end whatever is written here is marked partial.
  void expect_parts(int session);
  /// Python begins to write the session's files itself.
  void begin_final(int session);
  /// The session is over. The files of `write_partials` are removed where `is_written`.
  void release(int session, bool is_written);
  size_t count();

  /// Writes what is new in each session as NAME.partial.proton.
  WriteReport write_partials();
  /// Waits, two seconds at most, until Python has written what it has begun to.
  void wait_for_python();
  /// Writes every file of every session, as the end of the session would.
  ///   signal: name for the provenance.
  ///   goes_on: the process lives on, so the files are marked partial and written anew at its end;
  ///     nothing goes to standard output.
  WriteReport write_all(const std::string &signal, bool goes_on);

  /// In a forked child: the files are the parent's.
  void reset_after_fork() noexcept;

private:
  struct Entry {
    OutputPlan plan;
    bool is_finalizing = false;
    bool has_parts = false;
    std::map<uint32_t, uint64_t> seen; ///< revision of each phase in its partial file
    std::set<std::string> partials;    ///< files of `write_partials`
  };

  OutputGuard();
  std::map<int, Entry> entries();
  void write_partial(int session, const Entry &entry, WriteReport &report);

  std::mutex mutex_;
  std::map<int, Entry> entries_;
};

} // namespace proton
