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
#include "collector/memory/torch_memory.h"
#include "collector/replay/replay_collector.h"
#include "context/thread/stack_reader.h"
#include "driver/own_work.h"
#include "record/collective_log.h"
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
/// read the kind, whether the operator ended, words of its memory, the thread's number). `visit` is
/// called with the name and the address of operators that begin.
py::list probe_torch(const py::function &run, const py::function &visit) {
  TorchObserver &observer = TorchObserver::instance();
  if (observer.installed() || !observer.find_symbols())
    throw Error(ErrorCode::kUsage, "no libtorch to probe: it is not loaded, lacks the symbols of "
                                   "its observers, or is observed already");
  observer.begin_probe([&](const char *name, const void *token) {
    py::gil_scoped_acquire locked;
    try {
      visit(name, reinterpret_cast<uintptr_t>(token));
    } catch (py::error_already_set &error) {
      error.discard_as_unraisable(__func__);
    }
  });
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

/// The collectives of this process so far; a call is (kind, number, bytes, start and end in
/// ns, 0: unknown).
py::dict collectives() {
  CollectiveLog::Contents contents = CollectiveLog::instance().contents();
  py::list kinds;
  for (const CollectiveLog::Kind &each : contents.kinds) {
    py::dict kind;
    kind["name"] = each.name;
    kind["group"] = each.group;
    kind["ranks"] = each.ranks;
    kinds.append(kind);
  }
  py::list calls;
  for (const Collective &each : contents.calls)
    calls.append(py::make_tuple(each.kind, each.number, each.bytes, each.start_ns, each.end_ns));
  py::dict found;
  found["every"] = contents.every;
  found["kinds"] = kinds;
  found["calls"] = calls;
  return found;
}

/// (name of the column, type, config)
using EventTuple = std::tuple<std::string, uint32_t, uint64_t>;

PerfEvent perf_event(const EventTuple &tuple) {
  const auto &[metric, type, config] = tuple;
  return {metric, type, config};
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

bool watch_torch_memory() {
  Aggregator::Held().forget_memory();
  TickClock::calibrate();
  return TorchMemory::instance().watch(Aggregator::instance());
}

void unwatch_torch_memory() {
  TorchMemory::instance().unwatch();
  Aggregator::Held().forget_memory();
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
  module.def("has_torch_memory", &TorchMemory::is_loaded);
  module.def("watch_torch_memory", &watch_torch_memory);
  module.def("unwatch_torch_memory", &unwatch_torch_memory);
  module.def("mute_ops", &mute_ops);
  module.def("unmute_ops", &unmute_ops);
  module.def("mute_launches", &begin_own_work);
  module.def("unmute_launches", &end_own_work);
  module.def("loaded_build_id", &loaded_build_id, py::pos_only(), py::arg("file_name"));
  module.def("probe_torch", &probe_torch);
  module.def("record_operator", &record_operator);
  module.def("collectives", &collectives);
  module.def("forget_collectives", [] { CollectiveLog::instance().forget_calls(); });
}

} // namespace proton
