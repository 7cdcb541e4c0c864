#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "context/thread/python_stack.h"

#include <optional>
#include <span>
#include <string>

#include "calltree/context_tree.h"
#include "context/python/python_frames.h"
#include "context/python/python_lock.h"
#include "context/python/python_path.h"
#include "context/python/python_thread_name.h"
#include "context/thread/thread_state.h"

namespace proton {
namespace {

/// Holds the GIL and keeps the target's pending exception out of our calls.
class PythonCalls {
public:
  PythonCalls() : gil_(PyGILState_Ensure()) {
#if PY_VERSION_HEX >= 0x030C0000
    pending_ = PyErr_GetRaisedException();
#else
    PyErr_Fetch(&type_, &pending_, &trace_);
#endif
  }
  ~PythonCalls() {
#if PY_VERSION_HEX >= 0x030C0000
    PyErr_SetRaisedException(pending_);
#else
    PyErr_Restore(type_, pending_, trace_);
#endif
    PyGILState_Release(gil_);
  }
  PythonCalls(const PythonCalls &) = delete;
  PythonCalls &operator=(const PythonCalls &) = delete;

private:
  PyGILState_STATE gil_;
  PyObject *pending_ = nullptr;
#if PY_VERSION_HEX < 0x030C0000
  PyObject *type_ = nullptr, *trace_ = nullptr;
#endif
};

bool is_finalizing() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

/// Another thread may drop names between naming and following, but not for ever.
constexpr int kAttempts = 4;

/// The outer ones, down to the first without a name. [innermost first]
std::span<const Site> named_part(std::span<const Site> walked) {
  std::string name;
  size_t named = 0;
  while (named < walked.size() && find_site_name(walked[walked.size() - 1 - named], name))
    ++named;
  return walked.last(named);
}

/// The path of frames that may not be named for good, below the id of their outer ones. Nothing is
/// kept of them, because no reference keeps their code alive.
ContextId read_below(std::optional<ContextId> outer, std::span<const Site> walked, EpochId epoch) {
  ContextTree &tree = ContextTree::instance();
  const uint32_t collection = tree.settled_collections();
  ContextId id = outer.value_or(0);
  std::string name;
  for (auto site = walked.rbegin(); site != walked.rend(); ++site) {
    if (!find_site_name(*site, name) && !read_site_name(*site, name))
      continue;
    if (name == kPathStart)
      id = 0;
    if (name.empty() || name == kPathStart)
      continue;
    const ContextId below = tree.child_since(collection, id, name, FrameKind::kPython, 0, epoch);
    if (below == ContextTree::kStale)
      return 0;
    id = below;
  }
  return id == 0 || tree.touch_since(collection, id, epoch) ? id : 0;
}

ContextId follow_frames(PythonPath &path, const SessionState &now, bool may_wait) {
  std::vector<Site> walked = path.take_scratch();
  python_frames::list(walked);
  std::optional<ContextId> id;
  if (!may_wait) {
    id = path.follow(walked, now.epoch, find_site_name);
    if (!id) {
      std::span<const Site> named = named_part(walked);
      id = read_below(path.follow(named, now.epoch, find_site_name),
                      std::span(walked).first(walked.size() - named.size()), now.epoch);
    }
  }
  for (int attempt = 0; may_wait && attempt < kAttempts && !id; ++attempt) {
    if (attempt != 0) {
      MayWait may_wait;
      if (!may_wait)
        break;
      PythonCalls calls;
      name_sites(walked); // may run Python code that records and so changes `path`
    }
    path.renew(site_generation());
    id = path.follow(walked, now.epoch, find_site_name);
  }
  path.return_scratch(std::move(walked));
  return id.value_or(0);
}

ContextId current_path(const SessionState &now, bool may_wait) {
  PythonPath &path = this_thread().python;
  // Before the frames are read: code that is on the stack now cannot take a recycled address later.
  path.renew(site_generation());
  if (python_frames::are(path.frames()))
    if (std::optional<ContextId> id = path.last(now.epoch))
      return *id;
  return follow_frames(path, now, may_wait);
}

void *give_up_interpreter() noexcept {
  if (!holds_interpreter() || is_finalizing())
    return nullptr;
  return begin_python_wait() ? PyEval_SaveThread() : nullptr; // to take it back
}

void take_back_interpreter(void *held) noexcept {
  PyEval_RestoreThread(static_cast<PyThreadState *>(held));
  end_python_wait();
}

} // namespace

const PythonLock kInterpreterLock{give_up_interpreter, take_back_interpreter};

ContextId capture_python(const SessionState &now, bool may_wait) noexcept {
  // A thread without a state never ran Python, or the interpreter is gone.
  if (!PyGILState_GetThisThreadState() || is_finalizing())
    return 0;
  try {
    if constexpr (python_frames::kNeedsGil) {
      if (!may_wait)
        return PyGILState_Check() ? current_path(now, false) : 0;
      MayWait waits;
      if (!waits)
        return 0;
      PythonCalls calls;
      return current_path(now, true);
    } else {
      return current_path(now, may_wait);
    }
  } catch (...) { // out of memory: the record stands at the root
    return 0;
  }
}

uint32_t python_depth() noexcept {
  try {
    std::vector<Site> sites;
    python_frames::list(sites);
    name_sites(sites);
    uint32_t depth = 0;
    std::string name;
    for (const Site &site : sites) { // innermost first
      bool is_known = find_site_name(site, name);
      if (is_known && name == kPathStart)
        break;
      depth += is_known && !name.empty() ? 1 : 0;
    }
    return depth;
  } catch (...) {
    return 0;
  }
}

} // namespace proton
