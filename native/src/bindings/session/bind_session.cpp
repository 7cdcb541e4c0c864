// Sessions and phases.
#include <pybind11/stl.h>

#include "bindings/module/bindings.h"
#include "bindings/values/python_text.h"
#include "calltree/context_tree.h"
#include "context/python/site_names.h"
#include "context/thread/python_stack.h"
#include "context/thread/self_cost.h"
#include "session/session_registry.h"
#include "support/error.h"
#include "support/name.h"

namespace py = pybind11;

namespace proton {
namespace {

using Unlocked = py::call_guard<py::gil_scoped_release>;

SessionRegistry &sessions() { return SessionRegistry::instance(); }

int add_session(py::str name, const std::string &context, bool records_wall, bool keeps_timeline,
                bool upstream_shape) {
  ContextSource source = ContextSource::kShadow;
  if (context == "python")
    source = ContextSource::kPython;
  else if (context != "shadow")
    throw Error(ErrorCode::kUsage,
                "Unknown context source: " + context + "; choose shadow or python");
  std::string text(PythonText(name.ptr(), "name").text());
  py::gil_scoped_release release;
  return sessions().add(text, source, records_wall, keeps_timeline, upstream_shape);
}

uint32_t context_depth(int session) {
  {
    py::gil_scoped_release release;
    if (sessions().source(session) != ContextSource::kPython)
      return sessions().context_depth(session);
  }
  return python_depth();
}

void remove_session(int session) {
  bool is_last = false;
  {
    py::gil_scoped_release release;
    sessions().remove(session);
    is_last = sessions().active_count() == 0;
  }
  if (is_last)
    forget_site_names();
}

std::map<std::string, uint64_t> session_counts(int session) {
  RecordCounts counts = sessions().counts(session);
  uint64_t lost = 0;
  for (const auto &[reason, count] : sessions().losses(session))
    lost += count;
  return {{"launches", counts.launches},
          {"records", counts.records},
          {"failed", counts.failed},
          {"cleared", counts.cleared},
          {"ranges", counts.ranges},
          {"metrics", counts.metrics},
          {"instances", counts.instances},
          {"dropped", lost},
          {"drain_ns", static_cast<uint64_t>(counts.drain_ns)}};
}

py::bytes encode_phase(int session, uint32_t phase, const std::string &format) {
  FileFormat wanted = parse_file_format(format);
  std::string encoded;
  {
    py::gil_scoped_release release;
    encoded = sessions().encode(session, phase, wanted);
  }
  return py::bytes(encoded);
}

void write_phase(int session, uint32_t phase, py::object path, const std::string &format) {
  FileFormat wanted = parse_file_format(format);
  PyObject *encoded_path = nullptr; // the bytes that the file system knows
  if (PyUnicode_FSConverter(path.ptr(), &encoded_path) == 0)
    throw py::error_already_set();
  auto bytes = py::reinterpret_steal<py::bytes>(encoded_path);
  std::string target(bytes);
  py::gil_scoped_release release;
  write_file(target, sessions().encode(session, phase, wanted));
}

} // namespace

void bind_session(py::module_ &module) {
  module.def("add_session", &add_session, py::arg("name"), py::arg("context"),
             py::arg("records_wall"), py::arg("keeps_timeline") = false,
             py::arg("upstream_shape") = false, py::pos_only());
  module.def("activate_session", [](int id) { sessions().activate(id); }, Unlocked());
  module.def("deactivate_session", [](int id) { sessions().deactivate(id); }, Unlocked());
  module.def("remove_session", &remove_session);
  module.def("session_exists", [](int id) { return sessions().exists(id); }, Unlocked());
  module.def("session_active", [](int id) { return sessions().is_active(id); }, Unlocked());
  module.def("active_session_count", [] { return sessions().active_count(); }, Unlocked());
  module.def("is_recording", [] { return situation().active; });
  module.def("context_depth", &context_depth);
  module.def("session_counts", &session_counts, Unlocked());
  module.def("set_provenance", [](int id, const py::bytes &encoded) {
    std::string copy(encoded);
    py::gil_scoped_release release;
    sessions().set_provenance(id, std::move(copy));
  });
  module.def("drain", [] { sessions().drain(); }, Unlocked());
  module.def("advance_phase", [](int id) { return sessions().advance_phase(id); }, Unlocked());
  module.def("current_phase", [](int id) { return sessions().current_phase(id); }, Unlocked());
  module.def("live_phases", [](int id) { return sessions().live_phases(id); }, Unlocked());
  module.def(
      "is_phase_complete",
      [](int id, uint32_t phase) { return sessions().is_phase_complete(id, phase); }, Unlocked());
  module.def(
      "clear_phase",
      [](int id, uint32_t phase, bool up_to) { sessions().clear_phase(id, phase, up_to); },
      Unlocked());
  module.def("encode_phase", &encode_phase);
  module.def("write_phase", &write_phase);
  module.def(
      "folds_in_hatchet",
      [](int id, uint32_t phase) { return sessions().folds_in_hatchet(id, phase); }, Unlocked());
  module.def("event_cost_ns", &event_cost_ns, Unlocked());
  module.def("live_context_count", [] { return ContextTree::instance().live_count(); });
  module.def("live_name_count", &live_name_count);
}

} // namespace proton
