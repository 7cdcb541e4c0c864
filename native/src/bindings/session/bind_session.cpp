// Sessions: phases, timelines in files, and what is written when Python cannot.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/module/bindings.h"
#include "calltree/context_tree.h"
#include "context/python/python_path.h"
#include "context/thread/python_stack.h"
#include "context/thread/self_cost.h"
#include "context/thread/steps.h"
#include "driver/cuda/cuda_driver.h"
#include "record/device.h"
#include "record/timeline_event.h"
#include "session/partial_writer.h"
#include "session/session_registry.h"
#include "session/termination.h"
#include "support/clock.h"
#include "support/error.h"
#include "support/name.h"
#include "writer/bytes/utf8_text.h"
#include "writer/file/output_file.h"

namespace py = pybind11;

namespace proton {
namespace {

using Unlocked = py::call_guard<py::gil_scoped_release>;

// As long as a file system may take: half a year.
constexpr int64_t kPatience_ns = int64_t{180} * 24 * 3600 * 1'000'000'000;

SessionRegistry &sessions() { return SessionRegistry::instance(); }

/// Names joined by "+".
ContextSource parse_source(std::string_view context) {
  ContextSource source = ContextSource::kShadow;
  while (!context.empty()) {
    std::string_view part = context.substr(0, context.find('+'));
    if (part == "python")
      source = source | ContextSource::kPython;
    else if (part == "layers")
      source = source | ContextSource::kLayers;
    else if (part == "ops")
      source = source | ContextSource::kOps;
    else if (part == "shapes")
      source = source | ContextSource::kShapes;
    else if (part != "shadow")
      throw Error(ErrorCode::kUsage, "Unknown context source: " + std::string(part) +
                                         "; choose from: shadow, python, layers, ops, shapes");
    context.remove_prefix(std::min(context.size(), part.size() + 1));
  }
  return source;
}

std::shared_ptr<Session> add(const std::string &context, bool records_wall, bool keeps_timeline,
                             bool upstream_shape) {
  ContextSource source = parse_source(context);
  py::gil_scoped_release release;
  return sessions().add(source, records_wall, keeps_timeline, upstream_shape);
}

std::vector<int> live_sessions() {
  std::vector<int> ids;
  for (const std::shared_ptr<Session> &session : sessions().list())
    ids.push_back(session->id());
  return ids;
}

uint32_t context_depth(Session &session) {
  {
    py::gil_scoped_release release;
    uint32_t depth = session.context_depth();
    if (!has(session.source(), ContextSource::kPython))
      return depth;
  }
  return python_depth();
}

void remove(Session &session) {
  bool is_last = false;
  {
    py::gil_scoped_release release;
    session.remove();
    is_last = sessions().active_count() == 0;
  }
  if (is_last)
    forget_site_names();
}

void set_provenance(Session &session, const py::bytes &encoded) {
  std::string copy(encoded);
  py::gil_scoped_release release;
  session.set_provenance(std::move(copy));
}

std::map<std::string, uint64_t> counts(Session &session) {
  RecordCounts counts = session.counts();
  SelfCost cost = session.self_cost();
  uint64_t lost = 0;
  for (const auto &[reason, count] : session.losses())
    lost += count;
  return {{"launches", counts.launches},
          {"records", counts.records},
          {"failed", counts.failed},
          {"cleared", counts.cleared},
          {"ranges", counts.ranges},
          {"metrics", counts.metrics},
          {"instances", counts.instances},
          {"samples", counts.samples},
          {"dropped", lost},
          {"drain_ns", static_cast<uint64_t>(counts.drain_ns)},
          {"operators", cost.operators},
          {"nodes", cost.nodes},
          {"calls_ns", static_cast<uint64_t>(cost.spent_ns())}};
}

// Phases.

py::bytes encode(Session &session, uint32_t phase, const std::string &format) {
  FileFormat wanted = parse_file_format(format);
  std::string encoded;
  {
    py::gil_scoped_release release;
    encoded = session.encode(phase, wanted);
  }
  return py::bytes(encoded);
}

void write(Session &session, uint32_t phase, py::object path, const std::string &format) {
  FileFormat wanted = parse_file_format(format);
  PyObject *encoded_path = nullptr; // the bytes that the file system knows
  if (PyUnicode_FSConverter(path.ptr(), &encoded_path) == 0)
    throw py::error_already_set();
  auto bytes = py::reinterpret_steal<py::bytes>(encoded_path);
  std::string target(bytes);
  py::gil_scoped_release release;
  write_file(target, session.encode(phase, wanted));
}

void close_phases(Session &session, const py::bytes &path, bool has_trees, bool frees,
                  double interval_s) {
  ClosingPlan plan;
  plan.path = std::string(path);
  plan.has_trees = has_trees;
  plan.frees = frees;
  plan.interval_ns = static_cast<int64_t>(interval_s * 1e9);
  py::gil_scoped_release release;
  session.close_phases(std::move(plan));
}

py::list text_list(const std::vector<Name> &texts) {
  py::list listed;
  for (const Name &name : texts)
    listed.append(valid_utf8(name.text()));
  return listed;
}

py::array_t<uint64_t> instance_rows(const std::vector<TimelineScope> &instances) {
  py::array_t<uint64_t> rows({static_cast<py::ssize_t>(instances.size()), py::ssize_t{6}});
  auto cells = rows.mutable_unchecked<2>();
  for (py::ssize_t row = 0; row < rows.shape(0); ++row) {
    const TimelineScope &each = instances[static_cast<size_t>(row)];
    const uint64_t values[] = {each.start_cycle, each.cycles, each.warp,
                               each.end_warp,    each.scope,  each.is_async ? 1u : 0u};
    for (py::ssize_t column = 0; column < 6; ++column)
      cells(row, column) = values[column];
  }
  return rows;
}

py::list scope_launches(Session &session, uint32_t phase) {
  std::vector<ScopeLaunch> launches;
  {
    py::gil_scoped_release release;
    launches = session.scope_launches(phase);
  }
  std::vector<Device> devices = DeviceTable::instance().list();
  py::list listed;
  for (const auto &[path, launch] : launches) {
    py::list programs;
    for (const TimelineProgram &each : launch->programs)
      programs.append(py::make_tuple(each.program, each.processor, each.init_ns, each.pre_final_ns,
                                     each.post_final_ns, each.first, each.count, each.last_cycle,
                                     each.is_lossy));
    auto position = static_cast<size_t>(launch->device);
    std::string device;
    if (position < devices.size())
      device = valid_utf8(devices[position].kind) + ":" + std::to_string(devices[position].index);
    listed.append(py::make_tuple(text_list(path), launch->device, device, launch->clock_hz,
                                 text_list(*launch->scope_names), programs,
                                 instance_rows(launch->instances)));
  }
  return listed;
}

// Hardware counters. NumPy is imported by the first call that needs it.

template <typename T> py::array_t<T> array_of(const std::vector<T> &values) {
  return py::array_t<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

/// An array, or a list of numbers.
template <typename T> using Numbers = py::array_t<T, py::array::c_style | py::array::forcecast>;

template <typename T> std::vector<T> vector_of(const Numbers<T> &numbers) {
  return {numbers.data(), numbers.data() + numbers.size()};
}

uint32_t phase_or_current(Session &session, std::optional<uint32_t> phase) {
  return phase ? *phase : session.current_phase();
}

py::list take_bursts(Session &session, std::optional<uint32_t> phase) {
  std::vector<JoinedBurst> bursts;
  {
    py::gil_scoped_release release;
    bursts = session.take_bursts(phase_or_current(session, phase));
  }
  py::list taken;
  for (const JoinedBurst &joined : bursts) {
    const CounterBurst &burst = *joined.burst;
    size_t first = joined.first_sample, columns = burst.metrics->size();
    auto rows = static_cast<py::ssize_t>(joined.end_sample - first);
    py::dict each;
    each["device"] = joined.device;
    each["start_ns"] = py::array_t<int64_t>(rows, burst.start_ns.data() + first);
    each["end_ns"] = py::array_t<int64_t>(rows, burst.end_ns.data() + first);
    each["counts"] = py::array_t<double>({rows, static_cast<py::ssize_t>(columns)},
                                         burst.counts.data() + first * columns);
    each["nodes"] = array_of(joined.nodes);
    each["is_own"] = array_of(joined.is_own);
    each["kernel_start_ns"] = array_of(joined.kernel_start_ns);
    each["kernel_end_ns"] = array_of(joined.kernel_end_ns);
    taken.append(std::move(each));
  }
  return taken;
}

py::dict take_runs(Session &session) {
  std::vector<DeviceRun> runs;
  {
    py::gil_scoped_release release;
    runs = session.take_runs();
  }
  std::map<std::string, int32_t> numbers; // of names
  std::vector<int32_t> names;
  std::vector<uint64_t> launches;
  std::vector<int64_t> called_ns, start_ns, end_ns;
  for (const DeviceRun &run : runs) {
    auto next = static_cast<int32_t>(numbers.size());
    names.push_back(numbers.emplace(valid_utf8(run.name.text()), next).first->second);
    launches.push_back(run.launch);
    called_ns.push_back(run.called_ns);
    start_ns.push_back(run.start_ns);
    end_ns.push_back(run.end_ns);
  }
  py::dict taken, by_number;
  for (const auto &[name, number] : numbers)
    by_number[py::int_(number)] = name;
  taken["names"] = by_number;
  taken["name"] = array_of(names);
  taken["launch"] = array_of(launches);
  taken["called_ns"] = array_of(called_ns);
  taken["start_ns"] = array_of(start_ns);
  taken["end_ns"] = array_of(end_ns);
  return taken;
}

void set_metric_of_nodes(Session &session, const std::string &name, const Numbers<NodeIndex> &nodes,
                         const Numbers<double> &values, std::optional<uint32_t> phase) {
  std::vector<NodeIndex> its = vector_of(nodes);
  std::vector<double> given = vector_of(values);
  py::gil_scoped_release release;
  session.set_metric_of_nodes(name, its, given, phase_or_current(session, phase));
}

py::array_t<double> times_of_nodes(Session &session, const Numbers<NodeIndex> &nodes,
                                   std::optional<uint32_t> phase) {
  std::vector<NodeIndex> its = vector_of(nodes);
  std::vector<double> times_ns;
  {
    py::gil_scoped_release release;
    times_ns = session.times_of_nodes(its, phase_or_current(session, phase));
  }
  return array_of(times_ns);
}

/// Each name has a value for each time.
void add_readings(Session &session, int32_t device,
                  const std::map<std::string, std::vector<double>> &readings,
                  const std::vector<int64_t> &at_ns, std::optional<uint32_t> phase) {
  py::gil_scoped_release release;
  std::vector<EventCounter> counters;
  for (const auto &[name, values] : readings) {
    if (values.size() != at_ns.size())
      throw Error(ErrorCode::kUsage, std::to_string(values.size()) + " values were given for " +
                                         std::to_string(at_ns.size()) + " times");
    Name interned(name);
    for (size_t i = 0; i < values.size(); ++i)
      counters.push_back({at_ns[i], device, interned, values[i]});
  }
  session.add_readings(counters, phase_or_current(session, phase));
}

// Timelines.

int64_t unix_offset_ns() { return unix_ns() - monotonic_ns(); }

std::vector<TraceFormat> parse_formats(const std::vector<std::string> &names) {
  std::vector<TraceFormat> formats;
  for (const std::string &name : names)
    formats.push_back(parse_trace_format(name));
  return formats;
}

TraceFacts read_facts(const py::dict &facts) {
  auto number = [&](const char *key) {
    return facts.contains(key) ? facts[key].cast<int32_t>() : -1;
  };
  TraceFacts read;
  read.unix_offset_ns = unix_offset_ns();
  read.start_ns = monotonic_ns();
  read.process_id = getpid();
  read.process_name = facts["process_name"].cast<std::string>();
  read.host = facts["host"].cast<std::string>();
  read.rank = number("rank");
  read.local_rank = number("local_rank");
  read.world_size = number("world_size");
  read.upstream_shape = facts["upstream_shape"].cast<bool>();
  return read;
}

void stream_timeline(Session &session, const py::bytes &path,
                     const std::vector<std::string> &formats, const py::dict &facts) {
  StreamPlan plan{std::string(path), parse_formats(formats), read_facts(facts), make_trace_encoder};
  py::gil_scoped_release release;
  session.stream_timeline(std::move(plan));
}

// Phase, format, path and, for standard output, the descriptor of what belongs there.
using Ended = std::tuple<uint32_t, std::string, py::bytes, int>;

std::vector<Ended> end_timeline(Session &session, const std::vector<std::string> &formats,
                                int64_t clock_drift_ns) {
  std::vector<TraceFormat> ended_formats = parse_formats(formats);
  std::vector<EndedFile> files;
  {
    py::gil_scoped_release release;
    files = session.end_timeline(std::move(ended_formats), clock_drift_ns,
                                 monotonic_ns() + kPatience_ns);
  }
  std::vector<Ended> ended;
  for (const EndedFile &file : files)
    ended.emplace_back(file.phase, trace_format_name(file.format), py::bytes(file.path),
                       file.descriptor);
  return ended;
}

std::map<std::string, uint64_t> timeline_counts(Session &session) {
  StreamCounts counts = session.stream_counts();
  return {{"events", counts.events},
          {"bytes", counts.bytes},
          {"lost", counts.lost},
          {"waits", counts.waits},
          {"wait_ns", static_cast<uint64_t>(counts.wait_ns)}};
}

void write_partials(std::shared_ptr<Session> session, const py::bytes &path, double interval_s) {
  std::string copy = path;
  py::gil_scoped_release release;
  PartialWriter::instance().add(std::move(session), std::move(copy),
                                static_cast<int64_t>(interval_s * 1e9));
}

// Readings of what has a value at any time, and which GPUs there are to read.

constexpr const char *kCuda = "CUDA";

/// An empty kind means the host.
void add_counters(int64_t at_ns, const std::string &device_kind, int32_t device_index,
                  const std::vector<std::pair<std::string, double>> &readings) {
  int32_t device = -1;
  if (!device_kind.empty())
    device = DeviceTable::instance().find_or_add(device_kind, device_index);
  std::vector<EventCounter> counters;
  counters.reserve(readings.size());
  for (const auto &[name, value] : readings)
    counters.push_back({at_ns, device, Name(name), value});
  for (const std::shared_ptr<Session> &session : SessionRegistry::instance().list())
    session->add_counters(counters);
}

/// Those that some record was about, or whose context was seen.
std::vector<int32_t> cuda_ordinals() {
  std::vector<int32_t> found;
  for (const Device &device : DeviceTable::instance().list())
    if (device.kind == kCuda)
      found.push_back(device.index);
  return found;
}

/// Empty where there is no driver, no such device, or CUDA was not started yet.
std::string cuda_uuid(int32_t ordinal) {
  try {
    static const CudaDriver *driver = new CudaDriver(CudaDriver::open());
    return driver->device(ordinal).uuid;
  } catch (const Error &) {
    return {};
  }
}

void bind_counters(py::module_ &module) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  module.def("add_counters", &add_counters, py::arg("at_ns"), py::arg("device_kind"),
             py::arg("device_index"), py::arg("readings"), py::pos_only(), Unlocked());
  module.def("cuda_ordinals", &cuda_ordinals);
  module.def("cuda_uuid", &cuda_uuid, py::arg("ordinal"), py::pos_only(), Unlocked());
}

// Steps.

constexpr std::array<const char *, 6> kMarks = {"graph",     "layer",    "scope",
                                                "optimizer", "profiler", "declared"};

bool add_steady(Session &session, const py::bytes &provenance) {
  std::string copy = provenance;
  py::gil_scoped_release release;
  return session.add_steady(std::move(copy));
}

py::object whole_steps() {
  std::optional<StepWindow> window = whole_window();
  if (!window)
    return py::none();
  py::dict facts;
  facts["by"] = kMarks[static_cast<size_t>(window->mark)];
  facts["name"] = valid_utf8(window->name);
  facts["first"] = window->first;
  facts["count"] = window->count;
  facts["begun"] = step_marks();
  facts["begin_ns"] = window->begin_ns;
  facts["end_ns"] = window->end_ns;
  facts["periods_ns"] = window->periods_ns;
  return facts;
}

/// The name of the kind is one of `kMarks`. Returns whether a session records it.
bool note_step(std::string_view mark, std::string_view name) {
  auto found = std::find(kMarks.begin(), kMarks.end(), mark);
  bool is_recorded = found != kMarks.end() && session_state().wants_steps;
  if (is_recorded)
    mark_step(static_cast<StepMark>(found - kMarks.begin()), name);
  return is_recorded;
}

// How a recorded process ends: uncaught errors are shown as the interpreter shows them, and the
// exit code can be set where raising is too late.

int g_exit_code = 0;

void leave() {
  std::fflush(nullptr);
  if (g_exit_code >= 0)
    std::exit(g_exit_code); // with the exit handlers of C, which come after Python's
  signal(-g_exit_code, SIG_DFL);
  raise(-g_exit_code);
}

/// The process ends with this code once Python is shut down, or by signal `-code`.
void exit_with(int code) {
  if (g_exit_code == 0 && Py_AtExit(leave) != 0) { // no room for one more
    std::fflush(nullptr);
    _exit(code >= 0 ? code : 128 - code);
  }
  g_exit_code = code;
}

/// Shows an uncaught error as at the end of a program, with sys.excepthook and sys.last_value.
void print_uncaught(const py::object &error) {
  py::object type = py::type::of(error);
  py::object frames = error.attr("__traceback__");
  PyErr_Restore(type.release().ptr(), py::object(error).release().ptr(), frames.release().ptr());
  PyErr_PrintEx(1);
}

void bind_exit(py::module_ &module) {
  module.def("exit_with", &exit_with);
  module.def("print_uncaught", &print_uncaught);
}

} // namespace

void bind_session(py::module_ &module) {
  bind_exit(module);
  bind_counters(module);
  py::class_<Session, std::shared_ptr<Session>>(module, "Session")
      .def(py::init(&add), py::arg("context"), py::arg("records_wall"),
           py::arg("keeps_timeline") = false, py::arg("upstream_shape") = false, py::pos_only())
      .def_property_readonly("id", &Session::id)
      .def_property_readonly("is_live", py::cpp_function(&Session::is_live, Unlocked()))
      .def_property_readonly(
          "is_active",
          py::cpp_function([](Session &session) { return session.is_active(); }, Unlocked()))
      .def("activate", &Session::activate, Unlocked())
      .def("deactivate", &Session::deactivate, Unlocked())
      .def("remove", &remove)
      .def("context_depth", &context_depth)
      .def("set_provenance", &set_provenance)
      .def("counts", &counts, Unlocked())
      .def("advance_phase", &Session::advance_phase, Unlocked())
      .def("current_phase", &Session::current_phase, Unlocked())
      .def("live_phases", &Session::live_phases, Unlocked())
      .def("is_phase_complete", &Session::is_phase_complete, Unlocked())
      .def("clear_phase", &Session::clear_phase, Unlocked())
      .def("encode", &encode)
      .def("write", &write)
      .def("take_bursts", &take_bursts, py::arg("phase") = py::none())
      .def_property_readonly("counter_metrics",
                             py::cpp_function(&Session::counter_metrics, Unlocked()))
      .def("keep_runs", &Session::keep_runs, Unlocked())
      .def("take_runs", &take_runs)
      .def("times_of_nodes", &times_of_nodes, py::arg("nodes"), py::arg("phase") = py::none())
      .def("set_metric_of_nodes", &set_metric_of_nodes, py::arg("name"), py::arg("nodes"),
           py::arg("values"), py::arg("phase") = py::none())
      .def("add_readings", &add_readings, py::arg("device"), py::arg("readings"), py::arg("at_ns"),
           py::arg("phase") = py::none())
      .def("scope_launches", &scope_launches)
      .def("row_count", &Session::row_count, Unlocked())
      .def("sample_host", &Session::sample_host, Unlocked())
      .def("follow_steps", &Session::follow_steps, Unlocked())
      .def("add_steady", &add_steady)
      .def("close_phases", &close_phases)
      .def("take_written", &Session::take_written, Unlocked())
      .def("next_to_join", &Session::next_to_join, Unlocked())
      .def("end_joins", &Session::end_joins, Unlocked())
      .def("lose_join", &Session::lose_join, Unlocked())
      .def("stream_timeline", &stream_timeline)
      .def("end_recording", &Session::end_recording, Unlocked())
      .def(
          "settle", [](Session &session) { session.settle(monotonic_ns() + kPatience_ns, true); },
          Unlocked())
      .def("end_timeline", &end_timeline)
      .def("timeline_counts", &timeline_counts, Unlocked())
      .def("write_partials", &write_partials)
      .def(
          "begin_final_write",
          [](const Session &session) { PartialWriter::instance().begin_final(session); },
          Unlocked())
      .def(
          "release_partials",
          [](const Session &session, bool is_written) {
            PartialWriter::instance().release(session, is_written);
          },
          py::arg("is_written"), Unlocked());
  module.def("write_when_terminated", &write_when_terminated);
  module.def("live_sessions", &live_sessions, Unlocked());
  module.def("active_session_count", [] { return sessions().active_count(); }, Unlocked());
  module.def("is_recording", [] { return session_state().active; });
  module.def("drain", [] { Aggregator::Held().drain(); }, Unlocked());
  module.def("event_cost_ns", &event_cost_ns, Unlocked());
  module.def("live_context_count", [] { return ContextTree::instance().live_count(); });
  module.def("live_name_count", &live_name_count);
  module.def("whole_window", &whole_steps);
  module.def("mark_step", &note_step, py::arg("mark"), py::arg("name"), py::pos_only());
}

} // namespace proton
