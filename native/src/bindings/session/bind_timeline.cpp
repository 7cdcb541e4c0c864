// Timelines in files, and phases that are written while the program runs.
#include <pybind11/stl.h>

#include <ctime>

#include "bindings/module/bindings.h"
#include "session/session_registry.h"
#include "support/clock.h"
#include "support/error.h"

namespace py = pybind11;

namespace proton {
namespace {

using Unlocked = py::call_guard<py::gil_scoped_release>;

// As long as a file system may take: half a year.
constexpr int64_t kPatience_ns = int64_t{180} * 24 * 3600 * 1'000'000'000;

SessionRegistry &sessions() { return SessionRegistry::instance(); }

int64_t unix_offset_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec - monotonic_ns();
}

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
  read.keeps_kernel_scopes = facts["keeps_kernel_scopes"].cast<bool>();
  read.upstream_shape = facts["upstream_shape"].cast<bool>();
  return read;
}

void stream_timeline(int session, const py::bytes &path, const std::vector<std::string> &formats,
                     const py::dict &facts) {
  StreamPlan plan{std::string(path), parse_formats(formats), read_facts(facts), make_trace_encoder};
  py::gil_scoped_release release;
  sessions().stream_timeline(session, std::move(plan));
}

void close_phases(int session, const py::bytes &path, const std::string &format, bool frees,
                  double interval_s) {
  ClosingPlan plan;
  plan.path = std::string(path);
  if (!format.empty())
    plan.format = parse_file_format(format);
  plan.suffix = format;
  plan.frees = frees;
  plan.interval_ns = static_cast<int64_t>(interval_s * 1e9);
  py::gil_scoped_release release;
  sessions().close_phases(session, std::move(plan));
}

// Phase, format, path and, for standard output, the descriptor of what belongs there.
using Ended = std::tuple<uint32_t, std::string, py::bytes, int>;

std::vector<Ended> end_timeline(int session, const std::vector<std::string> &formats,
                                int64_t clock_drift_ns) {
  TimelineEnd end;
  end.formats = parse_formats(formats);
  end.clock_drift_ns = clock_drift_ns;
  end.hands_over = true;
  std::vector<EndedFile> files;
  {
    py::gil_scoped_release release;
    files = sessions().end_timeline(session, std::move(end), monotonic_ns() + kPatience_ns);
  }
  std::vector<Ended> ended;
  for (const EndedFile &file : files)
    ended.emplace_back(file.phase, trace_format_name(file.format), py::bytes(file.path),
                       file.descriptor);
  return ended;
}

void settle_session(int session) {
  sessions().settle(session, monotonic_ns() + kPatience_ns, true);
}

std::map<std::string, uint64_t> timeline_counts(int session) {
  StreamCounts counts = sessions().stream_counts(session);
  return {{"events", counts.events},
          {"bytes", counts.bytes},
          {"lost", counts.lost},
          {"waits", counts.waits},
          {"wait_ns", static_cast<uint64_t>(counts.wait_ns)}};
}

} // namespace

void bind_timeline(py::module_ &module) {
  module.def("stream_timeline", &stream_timeline);
  module.def("close_phases", &close_phases);
  module.def("end_recording", [](int id) { sessions().end_recording(id); }, Unlocked());
  module.def("settle_session", &settle_session, Unlocked());
  module.def("end_timeline", &end_timeline);
  module.def("timeline_counts", &timeline_counts, Unlocked());
}

} // namespace proton
