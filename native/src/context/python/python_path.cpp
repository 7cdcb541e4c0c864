#include "context/python/python_path.h"

#include <Python.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>

#include "calltree/context_tree.h"
#include "context/python/python_frames.h"
#include "support/fork_locks.h"

#define PY_SSIZE_T_CLEAN

namespace proton {
namespace {

size_t hash_of(const Site &site, ContextId parent) noexcept {
  uint64_t hash = reinterpret_cast<uintptr_t>(site.code) ^ (uint64_t{parent} << 32);
  hash = (hash ^ static_cast<uint64_t>(site.offset)) * 0x9E3779B97F4A7C15ull;
  return static_cast<size_t>(hash >> 40);
}

} // namespace

void PythonPath::forget(uint32_t collection) noexcept {
  frames_.clear();
  collection_ = collection;
}

void PythonPath::renew(uint32_t generation) noexcept {
  if (generation_ == generation)
    return;
  generation_ = generation;
  frames_.clear();
  steps_.fill({});
}

std::optional<ContextId> PythonPath::last(EpochId epoch) {
  ContextTree &tree = ContextTree::instance();
  if (frames_.empty())
    return 0;
  // Ids of before a collection may stand for other paths by now. A collection that begins after
  // this line frees only what no live epoch used, and `touch_since` notices it.
  if (tree.collections() != collection_)
    return std::nullopt;
  if (!tree.touch_since(collection_, leaf(), epoch))
    return std::nullopt;
  return leaf();
}

std::optional<ContextId> PythonPath::follow(std::span<const Site> walked, EpochId epoch,
                                            FindSiteName find) {
  ContextTree &tree = ContextTree::instance();
  for (;;) {
    uint32_t collection = tree.settled_collections();
    if (collection != collection_)
      forget(collection);
    size_t same = 0, most = std::min(walked.size(), frames_.size());
    while (same < most && frames_[same].site == walked[walked.size() - 1 - same])
      ++same;
    frames_.resize(same);
    switch (extend(walked.first(walked.size() - same), epoch, find)) {
    case Outcome::kUnknownSite:
      return std::nullopt;
    case Outcome::kDone:
      if (leaf() == 0 || tree.touch_since(collection_, leaf(), epoch))
        return leaf();
      break;
    case Outcome::kCollected:
      break; // a collection may have freed what we stand on: again from the root
    }
  }
}

PythonPath::Outcome PythonPath::extend(std::span<const Site> walked, EpochId epoch,
                                       FindSiteName find) {
  ContextTree &tree = ContextTree::instance();
  std::string name;
  frames_.reserve(frames_.size() + walked.size());
  for (size_t left = walked.size(); left != 0; --left) {
    const Site &site = walked[left - 1];
    ContextId parent = leaf();
    Step &step = steps_[hash_of(site, parent) % kSteps];
    bool is_known = step.site == site && step.parent == parent && step.collection == collection_;
    if (!is_known || site.code == nullptr) {
      if (!find(site, name))
        return Outcome::kUnknownSite;
      ContextId id = name == kPathStart ? 0 : parent;
      if (!name.empty() && name != kPathStart) {
        id = tree.child_since(collection_, parent, name, FrameKind::kPython, 0, epoch);
        if (id == ContextTree::kStale)
          return Outcome::kCollected;
      }
      step = {site, parent, id, collection_};
    }
    frames_.push_back({site, step.id});
  }
  return Outcome::kDone;
}

namespace {

struct SiteHash {
  size_t operator()(const Site &site) const noexcept {
    return (reinterpret_cast<uintptr_t>(site.code) ^ static_cast<size_t>(site.offset)) *
           0x9E3779B97F4A7C15ull;
  }
};

using SiteTable = std::unordered_map<Site, std::string, SiteHash>;

/// Past this number of sites the table starts anew, so that code that a program makes and drops in
/// a loop is not kept for ever.
constexpr size_t kMaxSites = size_t{1} << 16;

/// No other code, least of all Python, is called while the mutex is held.
struct SiteNames {
  SiteNames() { guard_across_fork(mutex, LockRank::kPythonSites); }
  std::mutex mutex;
  SiteTable names;
};

SiteNames *const g_names = new SiteNames; // outlives threads of the target
std::atomic<uint32_t> g_generation{0};

SiteNames &table() noexcept { return *g_names; }

PyObject *code_object(const Site &site) noexcept {
  return static_cast<PyObject *>(const_cast<void *>(site.code));
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
bool is_hidden_file(const std::string &file) {
  for (const char *part :
       {"/proton_bench/recording/", "/proton_bench_plugins/", "/proton_bench/pytest_plugin/",
        "/proton_bench/__main__.py", "/triton/knobs.py", "/_pytest/", "/pluggy/",
        "/pytest_asyncio/", "<frozen runpy>"})
    if (file.find(part) != std::string::npos)
      return true;
  return false;
}

/// Whether it is a function of pytest or unittest that calls a test, a fixture or its end.
bool calls_test(std::string_view file, std::string_view function) {
  return (file.ends_with("/_pytest/python.py") && function == "pytest_pyfunc_call") ||
         (file.ends_with("/_pytest/fixtures.py") &&
          (function == "call_fixture_func" || function == "_teardown_yield_fixture")) ||
         (file.ends_with("/unittest/case.py") && function.starts_with("_call"));
}

std::string shown_name(const Site &site, const std::string &file, const std::string &function) {
  if (calls_test(file, function))
    return std::string(kPathStart);
  if (is_hidden_file(file))
    return {};
  int line = PyCode_Addr2Line(reinterpret_cast<PyCodeObject *>(code_object(site)),
                              static_cast<int>(site.offset));
  return file + ':' + std::to_string(line) + '@' + function;
}

std::string resolved(const Site &site) {
  if (python_frames::is_hidden(site))
    return {};
  auto *code = reinterpret_cast<PyCodeObject *>(code_object(site));
  return shown_name(site, utf8(code->co_filename), utf8(code->co_name));
}

/// Of texts in ASCII alone, which lie in memory as they are.
[[maybe_unused]] bool copy_ascii(PyObject *text, std::string &copy) {
  if (!text || !PyUnicode_IS_COMPACT_ASCII(text))
    return false;
  copy.assign(reinterpret_cast<const char *>(PyUnicode_1BYTE_DATA(text)),
              static_cast<size_t>(PyUnicode_GET_LENGTH(text)));
  return true;
}

void name_site(const Site &site) {
  std::string name;
  if (find_site_name(site, name))
    return;
  name = resolved(site);
  Py_XINCREF(code_object(site));
  bool is_new = false;
  {
    SiteNames &known = table();
    std::lock_guard lock(known.mutex);
    is_new = known.names.emplace(site, std::move(name)).second;
  }
  if (!is_new) // another thread was faster
    Py_XDECREF(code_object(site));
}

} // namespace

bool find_site_name(const Site &site, std::string &name) {
  SiteNames &known = table();
  std::lock_guard lock(known.mutex);
  auto found = known.names.find(site);
  if (found == known.names.end())
    return false;
  name = found->second;
  return true;
}

bool read_site_name(const Site &site, std::string &name) {
  if constexpr (python_frames::kNeedsGil) {
    return false;
  } else {
    name.clear();
    if (python_frames::is_hidden(site))
      return true;
    auto *code = reinterpret_cast<PyCodeObject *>(code_object(site));
    std::string file, function;
    if (!copy_ascii(code->co_filename, file) || !copy_ascii(code->co_name, function))
      return false;
    name = shown_name(site, file, function);
    return true;
  }
}

void name_sites(std::span<const Site> sites) {
  bool is_full = false;
  {
    SiteNames &known = table();
    std::lock_guard lock(known.mutex);
    is_full = known.names.size() >= kMaxSites;
  }
  if (is_full)
    forget_site_names();
  for (const Site &site : sites)
    name_site(site);
}

void forget_site_names() noexcept {
  SiteTable dropped;
  {
    SiteNames &known = table();
    std::lock_guard lock(known.mutex);
    dropped.swap(known.names);
  }
  // The number changes before the references go: frames that were read under the old number keep
  // their code objects alive.
  g_generation.fetch_add(1, std::memory_order_seq_cst);
  for (auto &[site, name] : dropped)
    Py_XDECREF(code_object(site));
}

uint32_t site_generation() noexcept { return g_generation.load(std::memory_order_seq_cst); }

} // namespace proton
