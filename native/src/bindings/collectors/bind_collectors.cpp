// The native collectors.
#include <pybind11/stl.h>

#include <optional>
#include <utility>

#include "aggregate/consumer/aggregator.h"
#include "bindings/module/bindings.h"
#include "bindings/values/python_values.h"
#include "collector/cpu/cpu_collector.h"
#include "collector/cpu/op_stack.h"
#include "collector/cpu/torch_observer.h"
#include "collector/host/host_sampler.h"
#include "collector/replay/replay_collector.h"
#include "context/thread/stack_reader.h"
#include "driver/own_work.h"
#include "record/device.h"
#include "session/record_sink_abi.h"
#include "support/error.h"
#include "support/tick_clock.h"
#include "writer/file/output_file.h"

namespace py = pybind11;

namespace proton {
namespace {

using Unlocked = py::call_guard<py::gil_scoped_release>;

/// What an observer of the loaded libtorch sees while `run` runs: (kind, name, whether the observer
/// read the kind, whether the operator ended, words of its memory, the thread's number).
py::list probe_torch(const py::function &run) {
  TorchObserver &observer = TorchObserver::instance();
  if (observer.installed() || !observer.find_symbols())
    throw Error(ErrorCode::kUsage, "no libtorch to probe: it is not loaded, lacks the symbols of "
                                   "its observers, or is observed already");
  observer.begin_probe();
  try {
    run();
  } catch (...) {
    observer.end_probe();
    throw;
  }
  py::list seen;
  for (const TorchObserver::Seen &each : observer.end_probe())
    seen.append(py::make_tuple(each.kind, each.name, each.tells_scope, each.has_ended, each.words,
                               each.thread));
  return seen;
}

/// Records an operator that was timed elsewhere, by its path: (name, kind, generation) of each
/// frame.
void record_operator(const py::sequence &path, int64_t duration_ns, int64_t self_ns) {
  std::vector<NamedFrame> frames;
  for (const py::handle &each : path) {
    auto frame = py::reinterpret_borrow<py::tuple>(each);
    PythonText name(py::object(frame[0]).ptr(), "name");
    frames.push_back({Name(name.text()), static_cast<FrameKind>(frame[1].cast<uint8_t>()),
                      frame[2].cast<uint32_t>()});
  }
  record_range(frames, RangeKind::kOp, {TickClock::now_ns(), duration_ns, self_ns},
               this_thread_number());
}

void enter_kernel(const py::str &name, const py::object &variant) {
  PythonVariant facts(variant);
  const VariantRecord *record = facts.record();
  begin_kernel(PythonText(name.ptr(), "name").text(), record ? intern_variant(*record) : -1);
}

/// (name of the column, type, config)
using EventTuple = std::tuple<std::string, uint32_t, uint64_t>;

PerfEvent perf_event(const EventTuple &tuple) {
  const auto &[metric, type, config] = tuple;
  return {metric, type, config};
}

uint32_t text_index(Recording &recording, const py::dict &event, const char *key) {
  if (!event.contains(key))
    return kNoText;
  recording.strings.push_back(event[key].cast<std::string>());
  return static_cast<uint32_t>(recording.strings.size() - 1);
}

constexpr const char *kEventNames[] = {"",       "scope_enter", "scope_exit", "launch",
                                       "kernel", "failed",      "dropped"};

RecordedKind parse_kind(const std::string &text) {
  for (uint32_t kind = 1; kind < std::size(kEventNames); ++kind)
    if (text == kEventNames[kind])
      return static_cast<RecordedKind>(kind);
  throw Error(ErrorCode::kUsage, "unknown event '" + text +
                                     "'; choose scope_enter, scope_exit, launch, kernel, failed "
                                     "or dropped");
}

template <typename T> T number(const py::dict &event, const char *key) {
  return event.contains(key) ? event[key].cast<T>() : T{};
}

RecordedEvent parse_event(Recording &recording, const py::dict &from) {
  RecordedEvent event;
  event.kind = parse_kind(from["event"].cast<std::string>());
  event.name = text_index(recording, from, "name");
  event.device_kind = text_index(recording, from, "device_kind");
  event.device_index = number<int32_t>(from, "device_index");
  event.stream = number<uint32_t>(from, "stream");
  event.correlation_id = number<uint64_t>(from, "correlation_id");
  event.start_ns = number<int64_t>(from, "start_ns");
  event.end_ns = number<int64_t>(from, "end_ns");
  event.count = number<uint64_t>(from, "count");
  if (from.contains("variant")) {
    PythonVariant variant(from["variant"]);
    const VariantRecord &record = *variant.record();
    event.has_variant = 1;
    event.code_hash = record.code_hash;
    event.shared_bytes = record.shared_bytes;
    std::copy(std::begin(record.grid), std::end(record.grid), std::begin(event.grid));
    std::copy(std::begin(record.block), std::end(record.block), std::begin(event.block));
    event.signature = text_index(recording, py::dict(from["variant"]), "signature");
  }
  return event;
}

void write_recording(const std::string &path, const std::vector<py::dict> &events) {
  Recording recording;
  for (const py::dict &event : events)
    recording.events.push_back(parse_event(recording, event));
  write_file(path, encode_recording(recording));
}

py::list list_recording(const std::string &path) {
  Recording recording = read_recording(path);
  py::list events;
  auto put_text = [&](py::dict &event, const char *key, uint32_t index) {
    if (const char *text = recording.text(index))
      event[key] = text;
  };
  for (const RecordedEvent &recorded : recording.events) {
    py::dict event;
    event["event"] = kEventNames[static_cast<uint32_t>(recorded.kind)];
    put_text(event, "name", recorded.name);
    event["correlation_id"] = recorded.correlation_id;
    if (recorded.kind == RecordedKind::kLaunch && recorded.start_ns != 0)
      event["start_ns"] = recorded.start_ns;
    if (recorded.kind == RecordedKind::kDropped)
      event["count"] = recorded.count;
    if (recorded.kind == RecordedKind::kKernel) {
      put_text(event, "device_kind", recorded.device_kind);
      event["device_index"] = recorded.device_index;
      event["stream"] = recorded.stream;
      event["start_ns"] = recorded.start_ns;
      event["end_ns"] = recorded.end_ns;
    }
    if (recorded.has_variant != 0) {
      py::dict variant;
      variant["code_hash"] = recorded.code_hash;
      variant["grid"] = py::make_tuple(recorded.grid[0], recorded.grid[1], recorded.grid[2]);
      variant["block"] = py::make_tuple(recorded.block[0], recorded.block[1], recorded.block[2]);
      variant["shared_bytes"] = recorded.shared_bytes;
      put_text(variant, "signature", recorded.signature);
      event["variant"] = variant;
    }
    events.append(event);
  }
  return events;
}

void bind_cpu_collector(py::module_ &module) {
  py::class_<CpuCollector>(module, "CpuCollector")
      .def(py::init([](uint32_t max_depth, const std::optional<EventTuple> &event) {
             std::optional<PerfEvent> counted;
             if (event)
               counted = perf_event(*event);
             return std::make_unique<CpuCollector>(Aggregator::instance(), max_depth,
                                                   std::move(counted));
           }),
           py::arg("max_depth") = 2, py::arg("event") = py::none())
      .def("start", &CpuCollector::start)
      .def("flush", &CpuCollector::flush)
      .def("stop", &CpuCollector::stop)
      .def(
          "attach_torch",
          [](CpuCollector &, bool reads_scope, uint32_t node_offset, uint32_t fwd_thread_offset) {
            return TorchObserver::instance().attach(TorchObserver::kTimes,
                                                    {reads_scope, node_offset, fwd_thread_offset});
          },
          py::arg("reads_scope") = false, py::arg("node_offset") = 0,
          py::arg("fwd_thread_offset") = 0)
      .def("detach_torch",
           [](CpuCollector &) { TorchObserver::instance().detach(TorchObserver::kTimes); })
      .def(
          "enter_kernel",
          [](CpuCollector &, const py::str &name, const py::object &variant) {
            enter_kernel(name, variant);
          },
          py::arg("name"), py::arg("variant") = py::none(), py::pos_only())
      .def("exit_kernel", [](CpuCollector &) { end_kernel(); })
      .def("mute", [](CpuCollector &) { mute_ops(); })
      .def("unmute", [](CpuCollector &) { unmute_ops(); });
  module.def(
      "probe_perf_event",
      [](const EventTuple &event) { return PerfCounter::probe(perf_event(event)); },
      py::arg("event"), py::pos_only());
}

// Devices and records from Python: the slow way for third-party collectors, and the capsule.

void set_device(const std::string &kind, int32_t index, const py::dict &attributes) {
  Device device;
  device.kind = kind;
  device.index = index;
  for (auto [key, value] : attributes) {
    auto name = key.cast<std::string>();
    if (name == "arch")
      device.arch = value.cast<std::string>();
    else if (name == "num_sms")
      device.num_sms = value.cast<int64_t>();
    else if (name == "clock_rate_khz")
      device.clock_rate_khz = value.cast<int64_t>();
    else if (name == "memory_clock_rate_khz")
      device.memory_clock_rate_khz = value.cast<int64_t>();
    else if (name == "bus_width_bits")
      device.bus_width_bits = value.cast<int64_t>();
    else
      throw Error(ErrorCode::kUsage,
                  "unknown device attribute '" + name +
                      "'; choose arch, num_sms, clock_rate_khz, memory_clock_rate_khz or "
                      "bus_width_bits");
  }
  DeviceTable::instance().set(device);
}

uint64_t emit_launch() {
  uint64_t id = next_correlation_id();
  Aggregator::instance().launched(id);
  return id;
}

void emit_kernel(uint64_t correlation_id, const py::str &name, int64_t start_ns, int64_t end_ns,
                 const std::string &device_kind, int32_t device_index, uint32_t stream,
                 const py::object &variant) {
  KernelRecord record;
  record.correlation_id = correlation_id;
  record.start_ns = start_ns;
  record.end_ns = end_ns;
  std::string text(PythonText(name.ptr(), "name").text());
  record.name = text.c_str();
  record.device_kind = device_kind.c_str();
  record.device_index = device_index;
  record.stream = stream;
  PythonVariant facts(variant);
  record.variant = facts.record();
  py::gil_scoped_release release;
  Aggregator::instance().complete({&record, 1});
}

void add_dropped(const std::string &reason, uint64_t count) {
  Aggregator::instance().dropped({reason.c_str(), count});
}

void bind_records(py::module_ &module) {
  module.def("set_device", &set_device);
  module.def("record_sink",
             [] { return py::capsule(record_sink_abi(), "proton_bench.record_sink"); });
  module.def("emit_launch", &emit_launch);
  module.def(
      "emit_failed_launch", [](uint64_t id) { Aggregator::instance().failed(id); },
      py::call_guard<py::gil_scoped_release>());
  module.def("emit_kernel", &emit_kernel, py::arg("correlation_id"), py::arg("name"),
             py::arg("start_ns"), py::arg("end_ns"), py::arg("device_kind"),
             py::arg("device_index"), py::arg("stream"), py::arg("variant") = py::none(),
             py::pos_only());
  module.def("add_dropped", &add_dropped);
}

} // namespace

void bind_collectors(py::module_ &module) {
  bind_records(module);
  bind_cpu_collector(module);
  module.attr("can_sample_host") = StackReader::works();
  py::class_<HostSampler>(module, "HostSampler")
      .def(py::init([](double rate_hz) {
             return std::make_unique<HostSampler>(Aggregator::instance(),
                                                  static_cast<int64_t>(1e9 / rate_hz));
           }),
           py::arg("rate_hz"))
      .def("start", &HostSampler::start)
      .def("flush", &HostSampler::flush)
      .def("stop", &HostSampler::stop);
  py::class_<ReplayCollector>(module, "ReplayCollector")
      .def(py::init([](const std::string &path, bool manual) {
             return std::make_unique<ReplayCollector>(Aggregator::instance(), path, manual);
           }),
           py::arg("path"), py::arg("manual") = false)
      .def("start", &ReplayCollector::start, Unlocked())
      .def("flush", &ReplayCollector::flush, Unlocked())
      .def("stop", &ReplayCollector::stop, Unlocked())
      .def("launch", &ReplayCollector::launch, py::arg("count") = 1)
      .def_property_readonly("remaining", &ReplayCollector::remaining);
  module.def("mute_ops", &mute_ops);
  module.def("unmute_ops", &unmute_ops);
  module.def("mute_launches", &begin_own_work);
  module.def("unmute_launches", &end_own_work);
  module.def("loaded_build_id", &loaded_build_id, py::pos_only(), py::arg("file_name"));
  module.def("probe_torch", &probe_torch);
  module.def("record_operator", &record_operator);
  module.def("write_recording", &write_recording);
  module.def("read_recording", &list_recording);
}

} // namespace proton
