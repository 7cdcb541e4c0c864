#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "context/thread/stack_reader.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "calltree/context_tree.h"
#include "context/python/python_frames.h"
#include "context/python/python_lock.h"
#include "context/python/python_path.h"
#include "context/thread/self_cost.h"
#include "context/thread/thread_state.h"
#include "support/clock.h"

namespace proton {
namespace {

/// A thread that runs Python answers within microseconds; one in C code does not.
constexpr std::chrono::milliseconds kPatience{1};

std::atomic<StackReader *> g_reader{nullptr};

/// Whether it is a thread of ours: the first function that threading calls is. [GIL held]
bool is_ours(const std::vector<Site> &sites) noexcept {
  constexpr size_t kOfThreading = 3; // its own frames, outermost
  if (sites.size() <= kOfThreading)
    return false;
  const Site &first = sites[sites.size() - 1 - kOfThreading];
  auto *code = static_cast<PyObject *>(const_cast<void *>(first.code));
  if (!code || !PyCode_Check(code))
    return false;
  const char *file = PyUnicode_AsUTF8(reinterpret_cast<PyCodeObject *>(code)->co_filename);
  if (!file)
    PyErr_Clear();
  return file && std::strstr(file, "/proton_bench/recording/") != nullptr;
}

constexpr int64_t kImporting = -1; ///< offset of a frame of the import system that is shown

bool is_import_system(std::string_view name) { return name.starts_with("<frozen importlib"); }

/// Frames of the import system say nothing about who imports what, but for the one that
/// `import_of` found.
bool find_shown_name(const Site &site, std::string &name) {
  if (site.offset == kImporting) {
    name = "imports";
    return true;
  }
  if (!find_site_name(site, name))
    return false;
  if (is_import_system(name))
    name.clear();
  return true;
}

/// The frame of the import system below which no code of a module runs, such as a search for a
/// file, a compilation, or a hook; null if there is none. [sites innermost first]
Site *import_of(std::vector<Site> &sites) {
  std::string name;
  for (Site &site : sites) {
    if (!find_site_name(site, name) || name.ends_with("@<module>"))
      return nullptr;
    if (is_import_system(name))
      return &site;
  }
  return nullptr;
}

/// What the stack has open, noted for records of this epoch.
ContextId open_scope_of(const ShadowStack &stack, const SessionState &now) {
  ContextTree &tree = ContextTree::instance();
  for (;;) {
    uint32_t collection = tree.settled_collections();
    ContextId id = stack.published();
    if (id == 0 || tree.touch_since(collection, id, now.epoch))
      return id;
  }
}

} // namespace

bool StackReader::works() noexcept {
#ifdef Py_GIL_DISABLED
  return false;
#else
  return true;
#endif
}

StackReader &StackReader::instance() {
  // The parent's may be locked for ever in a forked child.
  static const int handlers =
      pthread_atfork(nullptr, nullptr, [] { g_reader.store(nullptr, std::memory_order_release); });
  static_cast<void>(handlers);
  StackReader *reader = g_reader.load(std::memory_order_acquire);
  if (!reader) {
    auto *fresh = new StackReader; // calls that the interpreter has pending may need it to the end
    if (g_reader.compare_exchange_strong(reader, fresh))
      return *fresh;
    delete fresh;
  }
  return *reader;
}

void StackReader::follow_this_thread() noexcept {
  main_handle_ = static_cast<uint64_t>(pthread_self());
  asks_main_ = gettid() == getpid();
}

bool StackReader::attach(int64_t now_ns) {
  main_until_ns_ = now_ns;
  skip(now_ns);
  MayWait may_wait;
  if (!may_wait)
    return false;
  PyGILState_Ensure();
  state_ = PyEval_SaveThread();
  return true;
}

void StackReader::detach() noexcept {
  threads_.clear();
  open_.clear();
  MayWait may_wait;
  if (!may_wait || !state_)
    return; // the interpreter frees it
  PyEval_RestoreThread(std::exchange(state_, nullptr));
  PyGILState_Release(PyGILState_UNLOCKED);
}

void StackReader::read_scopes(const SessionState &now) {
  open_.clear();
  for_each_thread([&](ThreadState &thread) {
    uint64_t handle = thread.handle.load(std::memory_order_acquire);
    if (ContextId id = handle == 0 ? 0 : open_scope_of(thread.stack, now))
      open_[handle] = id;
  });
}

ContextId StackReader::open_on(uint64_t handle) const noexcept {
  auto found = open_.find(handle);
  return found == open_.end() ? 0 : found->second;
}

bool StackReader::read(const SessionState &now, bool asks_main, std::vector<HostSample> &samples) {
  const int64_t tick_ns = monotonic_ns();
  read_scopes(now);
  const bool wants_frames = now.wants_python || now.wants_lines;
  // Else the main thread's own work needs no frames, and no wait for them.
  Capture at{open_on(main_handle_), 0, now.epoch};
  const bool is_placed = at.shadow != 0 && !wants_frames;
  if (is_placed)
    add_span(samples, at, main_until_ns_, tick_ns, true);
  if (!read_frames(asks_main && asks_main_ && !is_placed))
    return false;
  const int64_t read_ns = monotonic_ns();
  for (auto &[number, thread] : threads_) {
    const bool is_main = thread.handle == main_handle_;
    if (is_main && is_placed)
      continue;
    at = {open_on(thread.handle), 0, now.epoch};
    if (at.shadow == 0 || wants_frames)
      at.python = follow(thread, now);
    add_span(samples, at, is_main ? main_until_ns_ : thread.until_ns, read_ns, is_main);
  }
  since_ns_ = read_ns;
  return true;
}

void StackReader::add_span(std::vector<HostSample> &samples, const Capture &at, int64_t &until_ns,
                           int64_t now_ns, bool is_main) const {
  // A thread that was not there the last time began since, and counts from then on: the many that
  // live for less than a turn are seen as rarely as that makes up for.
  int64_t start_ns = std::max(until_ns, is_main ? skipped_until_ns_ : since_ns_);
  until_ns = now_ns;
  if (start_ns < now_ns)
    samples.push_back({at, is_main, start_ns, now_ns});
}

bool StackReader::read_frames(bool asks_main) {
  MayWait may_wait;
  if (!may_wait)
    return false;
  if (asks_main && ask_main())
    return true;
  PyEval_RestoreThread(state_);
  walk();
  state_ = PyEval_SaveThread();
  return true;
}

bool StackReader::ask_main() {
  std::unique_lock lock(mutex_);
  if (is_queued_)
    return false; // since an earlier turn: it is in C code
  question_ = Question::kAsked;
  is_queued_ = true;
  lock.unlock(); // the interpreter has a lock of its own
  const bool is_taken = Py_AddPendingCall(answer, nullptr) == 0;
  lock.lock();
  if (!is_taken) {
    is_queued_ = false;
    question_ = Question::kNone;
    return false;
  }
  answered_.wait_for(lock, kPatience, [&] { return question_ == Question::kAnswered; });
  if (question_ == Question::kAnswering)
    answered_.wait(lock, [&] { return question_ == Question::kAnswered; });
  return std::exchange(question_, Question::kNone) == Question::kAnswered;
}

// Called by the interpreter between two instructions of the main thread, which holds the GIL.
int StackReader::answer(void *) noexcept {
  StackReader *reader = g_reader.load(std::memory_order_acquire);
  if (!reader)
    return 0; // asked before a fork
  {
    std::lock_guard lock(reader->mutex_);
    reader->is_queued_ = false;
    if (reader->question_ != Question::kAsked)
      return 0;
    reader->question_ = Question::kAnswering;
  }
  reader->walk();
  {
    std::lock_guard lock(reader->mutex_);
    reader->question_ = Question::kAnswered;
  }
  reader->answered_.notify_one();
  return 0;
}

void StackReader::walk() noexcept {
  const int64_t start_ns = thread_cpu_ns();
  try {
    walk_threads();
  } catch (...) { // no memory: threads that were not reached are not seen this time
  }
  took_ns_ = thread_cpu_ns() - start_ns;
  add_reading_ns(took_ns_);
}

void StackReader::walk_threads() {
  // Where the table is full this empties it, which may run Python code: before frames are read.
  name_sites({});
  ++turn_;
  const uint32_t generation = site_generation();
  const bool is_renewed = std::exchange(generation_, generation) != generation;
  fresh_.clear();
  PyThreadState *state = PyInterpreterState_ThreadHead(PyInterpreterState_Main());
  for (; state; state = PyThreadState_Next(state)) {
    python_frames::list_of(state, scratch_);
    uint64_t handle = static_cast<uint64_t>(state->thread_id);
    if (scratch_.empty() || (handle != main_handle_ && is_ours(scratch_)))
      continue;
    Sampled &thread = threads_[PyThreadState_GetID(state)];
    thread.handle = handle;
    thread.turn = turn_;
    if (is_renewed || thread.sites != scratch_) {
      fresh_.insert(fresh_.end(), scratch_.begin(), scratch_.end());
      thread.sites.swap(scratch_);
    }
  }
  name_sites(fresh_); // none of them ends meanwhile: it runs no Python code
  std::erase_if(threads_, [&](const auto &item) { return item.second.turn != turn_; });
}

ContextId StackReader::follow(Sampled &thread, const SessionState &now) {
  thread.path.renew(generation_);
  Site *importing = import_of(thread.sites);
  const int64_t offset = importing ? std::exchange(importing->offset, kImporting) : 0;
  std::optional<ContextId> id = thread.path.follow(thread.sites, now.epoch, find_shown_name);
  if (importing)
    importing->offset = offset;
  // If names were dropped since, others may have taken their places.
  return site_generation() == generation_ ? id.value_or(0) : 0;
}

} // namespace proton
