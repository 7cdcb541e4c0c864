#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <frameobject.h>

#include "context/python/python_frames.h"

#include <memory>

namespace proton::public_frames {
namespace {

struct Release {
  void operator()(PyFrameObject *frame) const noexcept { Py_DECREF(frame); }
};
using FrameRef = std::unique_ptr<PyFrameObject, Release>;

/// Visits the frames of a thread, innermost first, until `visit` returns false. Code objects are
/// borrowed: their frames are on the thread's stack for as long as we look.
template <typename Visit> void for_each_frame(PyThreadState *thread, Visit &&visit) {
  FrameRef frame(PyThreadState_GetFrame(thread));
  while (frame) {
    PyCodeObject *code = PyFrame_GetCode(frame.get());
    Site site{code, PyFrame_GetLasti(frame.get())};
    Py_DECREF(code);
    if (!visit(site))
      return;
    frame.reset(PyFrame_GetBack(frame.get()));
  }
}

} // namespace

bool are(std::span<const PathFrame> path) noexcept {
  size_t left = path.size();
  bool is_same = true;
  for_each_frame(PyThreadState_Get(), [&](const Site &site) {
    is_same = left != 0 && path[left - 1].site == site;
    --left;
    return is_same;
  });
  return is_same && left == 0;
}

void list(std::vector<Site> &sites) { list_of(PyThreadState_Get(), sites); }

void list_of(_ts *thread, std::vector<Site> &sites) {
  sites.clear();
  for_each_frame(thread, [&](const Site &site) {
    sites.push_back(site);
    return true;
  });
}

bool is_hidden(const Site &) noexcept { return false; }

} // namespace proton::public_frames
