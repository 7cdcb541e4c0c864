// Both walks over Python frames side by side, so that tests can compare them.
#include <pthread.h>

#include <vector>

#include "bindings/module/bindings.h"
#include "context/python/python_frames.h"
#include "context/python/python_lock.h"

namespace py = pybind11;

namespace proton {
namespace {

py::list listed(const std::vector<Site> &sites) {
  py::list frames;
  for (const Site &site : sites) {
    auto *code = static_cast<PyObject *>(const_cast<void *>(site.code));
    frames.append(py::make_tuple(py::reinterpret_borrow<py::object>(code), site.offset));
  }
  return frames;
}

/// Both walks at one instruction of the caller; the second sees what the first left.
py::dict list_frames() {
  std::vector<Site> sites;
  py::dict walks;
#if PROTON_BENCH_RAW_FRAMES
  raw_frames::list(sites);
  std::erase_if(sites, raw_frames::is_hidden);
  walks["raw"] = listed(sites);
#endif
  public_frames::list(sites);
  walks["public"] = listed(sites);
  return walks;
}

} // namespace

void bind_python_frames(py::module_ &module) {
  module.def("python_frames", &list_frames);
  // Registered early and therefore called late: after the last profiles are written.
  py::module_::import("atexit").attr("register")(py::cpp_function(&end_python_calls));
  static const int forks = pthread_atfork(nullptr, nullptr, forget_python_calls_after_fork);
  static_cast<void>(forks);
  module.attr("python_frame_walk") = python_frames::kNeedsGil ? "public" : "raw";
}

} // namespace proton
