// The timeline of one session on its way into files, while the session records.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "aggregate/events/session_events.h"
#include "record/timeline_event.h"
#include "session/writer_thread.h"
#include "writer/file/growing_file.h"
#include "writer/timeline/trace_encoder.h"

namespace proton {

// One file of a timeline: what an encoder makes of events, on its way to the disk.

using EncoderFactory = std::function<std::unique_ptr<TraceEncoder>(TraceFormat)>;

/// "chrome_trace" or "perfetto".
const char *trace_format_name(TraceFormat format) noexcept;
/// What names of such files end in: ".chrome_trace" or ".pftrace".
const char *trace_suffix(TraceFormat format) noexcept;
/// Throws Error(kUsage) naming the two.
TraceFormat parse_trace_format(std::string_view name);

/// Writes when asked to, and whenever much was encoded. Throws Error(kOutput) or std::bad_alloc;
/// the file ends there and stays under its partial name. [one thread at a time]
class TraceFile {
public:
  static constexpr size_t kFlushBytes = size_t{4} << 20;

  TraceFile(const std::string &path, TraceFormat format, std::unique_ptr<TraceEncoder> encoder,
            const TraceFacts &facts);

  void add(const EventBatch &batch);
  /// Makes what stands on the disk a whole file of all that was added.
  void flush();
  /// Writes the last bytes and frees what the encoder holds; `add` and `flush` do nothing from now.
  void end(const TraceEnd &end);

  TraceFormat format() const { return format_; }
  GrowingFile &file() { return file_; }

private:
  TraceFormat format_;
  std::unique_ptr<TraceEncoder> encoder_;
  std::string pending_;
  bool is_dirty_ = true; ///< something was added since the last flush
  GrowingFile file_;
};

/// What files a session's timeline is written to.
struct StreamPlan {
  std::string path; ///< absolute, without suffix; "-" is standard output
  std::vector<TraceFormat> formats;
  TraceFacts facts;
  EncoderFactory make_encoder;
};

/// What became of the events of a timeline.
struct StreamCounts {
  uint64_t events = 0; ///< that were encoded
  uint64_t bytes = 0;  ///< that were written, in all formats
  uint64_t lost = 0;   ///< events that found no room
  uint64_t waits = 0;  ///< of threads that deliver records
  int64_t wait_ns = 0; ///< how long they took together
};

/// A file that is whole.
struct EndedFile {
  uint32_t phase = 0;
  TraceFormat format = TraceFormat::kChrome;
  std::string path;
  int descriptor = -1; ///< to copy to standard output from its start, where that was asked for
};

/// How a timeline ends.
struct StreamEnd {
  std::vector<TraceFormat> formats; ///< files of other formats are removed
  std::set<uint32_t> phases;        ///< that were ended; files of other phases are removed, too
  bool hands_over = false;          ///< what goes to standard output is handed over, not copied
};

/// Batches are encoded on the writer thread. A file that cannot be written is reported once
/// and stays under its partial name as it was before; the others go on.
class TraceStream : public EventSink,
                    public WriterClient,
                    public std::enable_shared_from_this<TraceStream> {
public:
  /// Throws Error(kUnavailable).
  static std::shared_ptr<TraceStream> open(StreamPlan plan);
  explicit TraceStream(StreamPlan plan) : plan_(std::move(plan)) {}

  bool take(uint32_t phase, EventBatch &&batch) noexcept override;
  void end_phase(uint32_t phase) noexcept override;
  void wait_for_room() noexcept override;

  /// What the files of the phase that ends next say. [aggregator's lock held]
  void set_facts(TraceEnd facts) { facts_ = std::move(facts); }
  /// There is more than one phase: files bear their numbers. [any thread]
  void number_files() noexcept;
  /// The phase was cleared: its events and its files vanish. [any thread]
  void discard_phase(uint32_t phase) noexcept;
  /// Files of a phase that ended get their names now. [any thread]
  void publish_phase(uint32_t phase) noexcept;

  /// Waits until what was taken so far is encoded and on the disk. False: it was not until the
  /// deadline. [not the writer thread, no lock held]
  bool catch_up(int64_t deadline_ns);
  /// Gives every file its name. Throws Error(kOutput) when one cannot be written, or
  /// could not earlier; the others are there then. [not the writer thread, no lock held]
  std::vector<EndedFile> end(StreamEnd end, int64_t deadline_ns);
  /// Removes what has not got its name. [not the writer thread, no lock held]
  void close();
  /// In a forked child: the files are the parent's.
  void abandon() noexcept { is_over_.store(true); }

  StreamCounts counts() const;

  void tick(int64_t now_ns) noexcept override;

private:
  struct Phase {
    std::vector<std::unique_ptr<TraceFile>> files; ///< one per format; null: it failed
    bool is_ended = false;
  };
  struct Ending;

  std::string file_path(uint32_t phase, TraceFormat format) const;
  Phase &phase(uint32_t number);
  /// Does something with each file; one that fails is let go.
  template <typename Work> void for_files(Phase &phase, Work work);
  void add(uint32_t number, const EventBatch &batch);
  void flush();
  void end_files(uint32_t number, const TraceEnd &facts);
  void publish(uint32_t number, const StreamEnd &end, std::vector<EndedFile> &ended);
  ///   is_written: the file is there all the same.
  void fail(const std::string &message, bool is_written = false) noexcept;
  /// Has the writer thread do it. Returns the job's number.
  template <typename Work> uint64_t post(Work work, size_t bytes = 0) noexcept;

  const StreamPlan plan_;
  TraceEnd facts_;
  std::atomic<bool> is_over_{false};
  std::atomic<uint64_t> events_{0};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> lost_{0};
  std::atomic<uint64_t> waits_{0};
  std::atomic<int64_t> wait_ns_{0};

  // Of the writer thread:
  std::map<uint32_t, Phase> phases_;
  bool are_numbered_ = false;
  int64_t flushed_ns_ = 0;

  std::mutex error_mutex_;
  std::string error_; ///< the first one
};

// How much memory a batch of events holds.

size_t batch_bytes(const EventBatch &batch) noexcept;

} // namespace proton
