#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <frameobject.h>

#include "context/python_stack.h"

#include <atomic>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "calltree/context_tree.h"

namespace proton {
namespace {

/// Position of a frame: cheap to read, resolved to a line only when it is new.
struct Site {
  PyCodeObject *code = nullptr;
  int instruction = 0;
  bool operator==(const Site &other) const = default;
};
struct SiteHash {
  size_t operator()(const Site &site) const noexcept {
    return reinterpret_cast<uintptr_t>(site.code) * 31 + static_cast<size_t>(site.instruction);
  }
};

/// Names of the sites seen. Owns a reference to each code object, so that no other code object
/// can get its address while the table lives.
struct SiteNames {
  std::mutex mutex; // the GIL does not exist in free-threaded builds
  std::unordered_map<Site, std::string, SiteHash> names;
  std::atomic<uint32_t> generation{0}; ///< changes when the table was emptied
};

SiteNames &sites() {
  static SiteNames *table = new SiteNames;
  return *table;
}

/// The last path of a thread: an unchanged prefix costs one comparison per frame.
struct LastPath {
  std::vector<Site> walked; ///< scratch, innermost first
  std::vector<Site> sites;  ///< outermost first
  std::vector<ContextId> ids;
  uint32_t collection = 0;
  uint32_t generation = 0;
};
LastPath &last_path() {
  thread_local LastPath path;
  return path;
}

std::string utf8(PyObject *text) {
  Py_ssize_t size = 0;
  const char *bytes = PyUnicode_AsUTF8AndSize(text, &size);
  if (bytes)
    return {bytes, static_cast<size_t>(size)};
  PyErr_Clear(); // lone surrogates, e.g. from an undecodable file name
  PyObject *escaped = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
  if (!escaped) {
    PyErr_Clear();
    return "?";
  }
  std::string result(PyBytes_AS_STRING(escaped), static_cast<size_t>(PyBytes_GET_SIZE(escaped)));
  Py_DECREF(escaped);
  return result;
}

/// Frames that are not part of the target's path: the profiler's own, those of the hook chain and
/// of the test runner that call it, and the start of the program.
bool is_hidden_frame(const std::string &file) {
  for (const char *part :
       {"/proton_bench/capture/", "/proton_bench_plugins/", "/proton_bench/pytest_plugin.py",
        "/proton_bench/__main__.py", "/triton/knobs.py", "/_pytest/", "/pluggy/", "<frozen runpy>"})
    if (file.find(part) != std::string::npos)
      return true;
  return false;
}

/// "file:line@function", or empty for a hidden frame.
std::string name_of(const Site &site) {
  SiteNames &table = sites();
  std::lock_guard lock(table.mutex);
  auto found = table.names.find(site);
  if (found != table.names.end())
    return found->second;
  std::string file = utf8(site.code->co_filename);
  std::string name;
  if (!is_hidden_frame(file))
    name = file + ':' + std::to_string(PyCode_Addr2Line(site.code, site.instruction)) + '@' +
           utf8(site.code->co_name);
  Py_INCREF(site.code);
  table.names.emplace(site, name);
  return name;
}

/// Fills `walked` with the frames of this thread, innermost first. The code objects are borrowed:
/// their frames are on this thread's stack for as long as we look. [GIL held]
void walk(std::vector<Site> &walked) {
  walked.clear();
  PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame) {
    PyCodeObject *code = PyFrame_GetCode(frame);
    walked.push_back({code, PyFrame_GetLasti(frame)});
    Py_DECREF(code);
    PyFrameObject *back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
}

ContextId intern_path(const Situation &now) {
  LastPath &path = last_path();
  ContextTree &tree = ContextTree::instance();
  uint32_t collection = tree.collections();
  uint32_t generation = sites().generation.load(std::memory_order_acquire);
  if (path.collection != collection || path.generation != generation) {
    path.sites.clear();
    path.ids.clear();
    path.collection = collection;
    path.generation = generation;
  }
  walk(path.walked);
  size_t count = path.walked.size();
  size_t same = 0;
  while (same < count && same < path.sites.size() &&
         path.sites[same] == path.walked[count - 1 - same])
    ++same;
  path.sites.resize(same);
  path.ids.resize(same);
  ContextId id = same == 0 ? 0 : path.ids[same - 1];
  for (size_t i = same; i < count; ++i) {
    const Site &site = path.walked[count - 1 - i];
    std::string name = name_of(site);
    if (!name.empty())
      id = tree.child(id, name, FrameKind::kPython, 0, now.epoch);
    path.sites.push_back(site);
    path.ids.push_back(id);
  }
  if (id != 0)
    tree.touch(id, now.epoch);
  return id;
}

} // namespace

ContextId capture_python(const Situation &now) noexcept {
  if (!Py_IsInitialized())
    return 0;
#if PY_VERSION_HEX >= 0x030D0000
  if (Py_IsFinalizing())
    return 0;
#endif
  PyGILState_STATE gil = PyGILState_Ensure();
  ContextId id = 0;
  // A pending exception belongs to the target: keep it across our calls.
#if PY_VERSION_HEX >= 0x030C0000
  PyObject *pending = PyErr_GetRaisedException();
#else
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
#endif
  try {
    id = intern_path(now);
  } catch (...) { // out of memory: the record stands at the root
  }
#if PY_VERSION_HEX >= 0x030C0000
  PyErr_SetRaisedException(pending);
#else
  PyErr_Restore(type, value, trace);
#endif
  PyGILState_Release(gil);
  return id;
}

uint32_t python_depth() noexcept {
  try {
    LastPath &path = last_path();
    walk(path.walked);
    uint32_t depth = 0;
    for (const Site &site : path.walked)
      depth += name_of(site).empty() ? 0 : 1;
    return depth;
  } catch (...) {
    return 0;
  }
}

void forget_python_frames() noexcept {
  SiteNames &table = sites();
  std::unordered_map<Site, std::string, SiteHash> dropped;
  {
    std::lock_guard lock(table.mutex);
    dropped.swap(table.names);
    table.generation.fetch_add(1, std::memory_order_release);
  }
  for (auto &[site, name] : dropped)
    Py_DECREF(site.code); // outside the lock: it may run arbitrary code
}

} // namespace proton
