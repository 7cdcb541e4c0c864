// The build tries to compile this file, and uses the public API where that fails.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "context/python/python_frames.h"

#if !defined(PROTON_BENCH_RAW_FRAMES) || PROTON_BENCH_RAW_FRAMES

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030F0000
#error "the layout of interpreter frames of this Python version is not known"
#elif defined(Py_GIL_DISABLED)
#error "without a GIL a frame's code may have several copies of its instructions"
#elif defined(Py_STACKREF_DEBUG)
#error "references on the stack are indexes in this build of Python"
#endif

#define Py_BUILD_CORE 1
#if PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_interpframe_structs.h>
#else
#include <internal/pycore_frame.h>
#endif
#undef Py_BUILD_CORE

#include <cstddef>

namespace proton::raw_frames {
namespace {

using Frame = struct _PyInterpreterFrame;

/// The innermost frame of a thread; null for one that runs no Python.
const Frame *innermost_of(const PyThreadState *state) noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return state->current_frame;
#else
  return state->cframe ? state->cframe->current_frame : nullptr;
#endif
}

/// The same of the calling thread, also where it has released the GIL.
const Frame *innermost() noexcept {
  // Asks for the thread's own state: before 3.12 the "current" one is that of the GIL's holder.
  const PyThreadState *state = PyGILState_GetThisThreadState();
  return state ? innermost_of(state) : nullptr;
}

/// A code object, or None for an entry from C (3.13 and later).
const void *executable(const Frame &frame) noexcept {
#if PY_VERSION_HEX >= 0x030E0000
  constexpr uintptr_t kTags = 7; // objects are aligned to 8 bytes at least
  return reinterpret_cast<const void *>(frame.f_executable.bits & ~kTags);
#elif PY_VERSION_HEX >= 0x030D0000
  return frame.f_executable;
#else
  return frame.f_code;
#endif
}

const void *instruction(const Frame &frame) noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return frame.instr_ptr;
#else
  return frame.prev_instr;
#endif
}

/// Instructions lie behind the header of their code object, so no load is needed for the offset.
Site site_of(const Frame &frame) noexcept {
  const void *code = executable(frame);
  uintptr_t first = reinterpret_cast<uintptr_t>(code) + offsetof(PyCodeObject, co_code_adaptive);
  return {code, static_cast<int64_t>(reinterpret_cast<uintptr_t>(instruction(frame)) - first)};
}

} // namespace

bool are(std::span<const PathFrame> path) noexcept {
  // Every frame is compared: the address, code and instruction of the innermost one do not prove
  // that its callers are the same, because a function called again from the next line gets the same
  // memory.
  size_t left = path.size();
  for (const Frame *frame = innermost(); frame; frame = frame->previous) {
    if (left == 0 || path[left - 1].site != site_of(*frame))
      return false;
    --left;
  }
  return left == 0;
}

void list(std::vector<Site> &sites) {
  sites.clear();
  for (const Frame *frame = innermost(); frame; frame = frame->previous)
    sites.push_back(site_of(*frame));
}

void list_of(_ts *thread, std::vector<Site> &sites) {
  sites.clear();
  for (const Frame *frame = innermost_of(thread); frame; frame = frame->previous)
    sites.push_back(site_of(*frame));
}

bool is_hidden(const Site &site) noexcept {
  if (!site.code)
    return true;
  auto *object = static_cast<PyObject *>(const_cast<void *>(site.code));
  if (!PyCode_Check(object))
    return true;
  auto *code = reinterpret_cast<PyCodeObject *>(object);
  return site.offset < int64_t{code->_co_firsttraceable} * int64_t{sizeof(_Py_CODEUNIT)};
}

} // namespace proton::raw_frames

#endif
