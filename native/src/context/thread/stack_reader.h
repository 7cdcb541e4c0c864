// Where all threads of the program stand, read by a thread of our own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "context/python/python_path.h"
#include "context/thread/current.h"
#include "record/record.h"

struct _ts; // PyThreadState

namespace proton {

/// Samples all threads that run Python. Frames are read with the GIL held and never without. The
/// main thread is asked to read them itself, between two of its instructions: it is then seen where
/// it stood, not where it next gave the GIL up. While it is in C code the reader takes the GIL.
///
/// Lives as long as the process; one thread at a time reads.
class StackReader {
public:
  /// Whether frames of other threads can be read here: not in a build without a GIL.
  static bool works() noexcept;
  /// The process's own; a forked child has another one.
  static StackReader &instance();

  /// Makes the calling thread the main one. [GIL held]
  void follow_this_thread() noexcept;
  /// Begins at a time of CLOCK_MONOTONIC. False: the interpreter ends. [reading thread]
  bool attach(int64_t now_ns);
  /// Forgets all threads. [reading thread]
  void detach() noexcept;
  /// Nothing was recorded until then. [reading thread]
  void skip(int64_t now_ns) noexcept { since_ns_ = skipped_until_ns_ = now_ns; }
  /// Appends a sample of each thread, for its time since the one before. False: the interpreter
  /// ends, and there are none any more. May throw std::bad_alloc. [reading thread]
  ///   asks_main: false where the main thread waits for this, and does not answer.
  bool read(const SessionState &now, bool asks_main, std::vector<HostSample> &samples);
  /// Processor time of the latest reading of frames, for which nothing else ran Python.
  int64_t took_ns() const noexcept { return took_ns_; }

private:
  /// A thread that runs Python.
  struct Sampled {
    std::vector<Site> sites; ///< innermost first
    PythonPath path;
    uint64_t handle = 0;
    uint64_t turn = 0; ///< in which it was seen last
    int64_t until_ns = 0;
  };
  enum class Question : uint8_t { kNone, kAsked, kAnswering, kAnswered };

  StackReader() = default;
  static int answer(void *) noexcept;
  void read_scopes(const SessionState &now);
  ContextId open_on(uint64_t handle) const noexcept;
  bool read_frames(bool asks_main);
  bool ask_main();
  void walk() noexcept;
  void walk_threads();
  ContextId follow(Sampled &thread, const SessionState &now);
  void add_span(std::vector<HostSample> &samples, const Capture &at, int64_t &until_ns,
                int64_t now_ns, bool is_main) const;

  _ts *state_ = nullptr; ///< of the reading thread
  uint64_t main_handle_ = 0;
  bool asks_main_ = false; ///< pending calls run on that thread
  int64_t since_ns_ = 0;   ///< when frames were read last
  int64_t skipped_until_ns_ = 0;
  int64_t main_until_ns_ = 0;
  int64_t took_ns_ = 0;
  std::unordered_map<uint64_t, ContextId> open_; ///< by handle; the reading thread's

  // Of whoever holds the GIL while a question is open, else of the reading thread.
  std::unordered_map<uint64_t, Sampled> threads_; ///< by Python's number
  std::vector<Site> scratch_;
  std::vector<Site> fresh_;
  uint64_t turn_ = 0;
  uint32_t generation_ = 0; ///< of site names, at the latest walk

  std::mutex mutex_; ///< not held while frames are read
  std::condition_variable answered_;
  Question question_ = Question::kNone;
  bool is_queued_ = false; ///< the interpreter has our call and did not make it yet
};

} // namespace proton
