// The collector of scopes inside kernels. Triton calls plain C functions at each launch: going
// through pybind11 would cost more than the work.
#include <pybind11/stl.h>

#include <span>

#include "aggregate/consumer/aggregator.h"
#include "bindings/module/bindings.h"
#include "bindings/values/python_values.h"
#include "collector/instrumentation/decoder/host_decoder.h"
#include "collector/instrumentation/runtime/runtime.h"
#include "context/thread/current.h"
#include "record/cycle_record.h"
#include "record/timeline_record.h"
#include "support/error.h"

namespace py = pybind11;

namespace proton {
namespace {

py::dict shown_scope(const ScopeTotals &totals) {
  py::dict buckets;
  for (uint32_t bucket = 0; bucket < kCycleBuckets; ++bucket)
    if (totals.buckets[bucket] != 0)
      buckets[py::int_(bucket)] = totals.buckets[bucket];
  py::dict scope;
  scope["count"] = totals.count;
  scope["cycles"] = totals.cycles;
  scope["min_cycles"] = totals.count == 0 ? 0 : totals.min_cycles;
  scope["max_cycles"] = totals.max_cycles;
  scope["buckets"] = buckets;
  return scope;
}

py::dict shown(const KernelTotals &totals) {
  py::dict counts;
  counts["launches"] = totals.launches;
  counts["programs"] = totals.programs;
  counts["skipped_programs"] = totals.skipped_programs;
  counts["corrupt_programs"] = totals.corrupt_programs;
  counts["records"] = totals.records;
  counts["lost_records"] = totals.lost_records;
  counts["unpaired_records"] = totals.unpaired_records;
  counts["lossy_programs"] = totals.lossy_programs;
  counts["lossy_warps"] = totals.lossy_warps;
  return counts;
}

py::list shown(std::span<const ScopeTotals> scopes) {
  py::list all;
  for (const ScopeTotals &scope : scopes)
    all.append(shown_scope(scope));
  return all;
}

using Unlocked = py::call_guard<py::gil_scoped_release>;
using SharedRuntime = std::shared_ptr<InstrumentationRuntime>;

constexpr const char *kCapsuleName = "proton_bench.instrumentation_runtime";

/// The memory of a launch; Triton asks it for its address.
struct BufferObject {
  PyObject_HEAD;
  unsigned long long address;
};

PyTypeObject *g_buffer_type = nullptr;

PyObject *buffer_data_ptr(PyObject *object, PyObject *) {
  return PyLong_FromUnsignedLongLong(reinterpret_cast<BufferObject *>(object)->address);
}

void buffer_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

PyMethodDef kBufferMethods[] = {
    {"data_ptr", buffer_data_ptr, METH_NOARGS, "Returns the address on the device."},
    {nullptr, nullptr, 0, nullptr}};
char kBufferDoc[] = "Memory of a device for the records of one launch.";
PyType_Slot kBufferSlots[] = {{Py_tp_doc, kBufferDoc},
                              {Py_tp_dealloc, reinterpret_cast<void *>(buffer_dealloc)},
                              {Py_tp_methods, kBufferMethods},
                              {0, nullptr}};
PyType_Spec kBufferSpec = {"proton_bench._native.profile_buffer", sizeof(BufferObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, kBufferSlots};

PyObject *interned(const char *text) {
  PyObject *name = PyUnicode_InternFromString(text);
  if (!name)
    throw py::error_already_set();
  return name;
}

/// DataKeys of attributes and keys, made once.
struct DataKeys {
  PyObject *data = interned("data");
  PyObject *function = interned("function");
  PyObject *stream = interned("stream");
};

const DataKeys &data_keys() {
  static const DataKeys *all = new DataKeys; // one reference each for the life of the process
  return *all;
}

InstrumentationRuntime &runtime_of(PyObject *capsule) {
  return **static_cast<SharedRuntime *>(PyCapsule_GetPointer(capsule, kCapsuleName));
}

unsigned long long as_number(PyObject *number) {
  if (!number || number == Py_None)
    return 0;
  unsigned long long value = PyLong_AsUnsignedLongLong(number);
  if (value == ~0ull && PyErr_Occurred())
    throw py::error_already_set();
  return value;
}

void *as_stream(PyObject *number) { return reinterpret_cast<void *>(as_number(number)); }

/// allocator(size, alignment, stream): driver allocations suit every alignment that Triton asks.
PyObject *allocate(PyObject *capsule, PyObject *const *arguments, Py_ssize_t count) {
  return guarded<PyObject *>(nullptr, [&]() -> PyObject * {
    if (count != 3)
      throw Error(ErrorCode::kUsage, "the profile allocator takes size, alignment and stream");
    cuda::DevicePointer address =
        runtime_of(capsule).allocate(as_number(arguments[0]), as_stream(arguments[2]));
    PyObject *buffer = g_buffer_type->tp_alloc(g_buffer_type, 0);
    if (buffer)
      reinterpret_cast<BufferObject *>(buffer)->address = address;
    return buffer;
  });
}

/// launch_exit(metadata), with Triton's LazyDict.
PyObject *launch_exit(PyObject *capsule, PyObject *metadata) {
  if (!InstrumentationRuntime::has_open_launch())
    Py_RETURN_NONE;
  return guarded<PyObject *>(nullptr, [&]() -> PyObject * {
    auto data = py::reinterpret_steal<py::object>(PyObject_GetAttr(metadata, data_keys().data));
    if (!data || !PyDict_Check(data.ptr()))
      throw py::error_already_set();
    PyObject *function = PyDict_GetItemWithError(data.ptr(), data_keys().function);
    PyObject *stream = PyDict_GetItemWithError(data.ptr(), data_keys().stream);
    if (PyErr_Occurred())
      throw py::error_already_set();
    runtime_of(capsule).launched(as_number(function), as_stream(stream));
    Py_RETURN_NONE;
  });
}

PyMethodDef kAllocate = {"allocator",
                         reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(allocate)),
                         METH_FASTCALL, "Returns memory for the records of the next launch."};
PyMethodDef kLaunchExit = {"launch_exit", launch_exit, METH_O, "Reduces the records of a launch."};

/// The runtime and the functions for Triton. The functions keep it alive.
struct PythonRuntime {
  explicit PythonRuntime(const InstrumentationOptions &options)
      : runtime(std::make_shared<InstrumentationRuntime>(Aggregator::instance(), options)),
        allocator(bind(kAllocate)), exit(bind(kLaunchExit)) {}

  py::object bind(PyMethodDef &method) const {
    py::capsule capsule(new SharedRuntime(runtime), kCapsuleName,
                        [](void *shared) { delete static_cast<SharedRuntime *>(shared); });
    return py::reinterpret_steal<py::object>(PyCFunction_New(&method, capsule.ptr()));
  }

  SharedRuntime runtime;
  py::object allocator;
  py::object exit;
};

template <typename T> T entry(const py::dict &layout, const char *key, T otherwise) {
  return layout.contains(key) ? layout[key].cast<T>() : otherwise;
}

void set_scopes(InstrumentedKernel &kernel, const py::dict &layout) {
  auto scopes = entry<std::map<uint32_t, std::string>>(layout, "names", {});
  auto parents = entry<std::map<uint32_t, uint32_t>>(layout, "parents", {});
  uint32_t count = scopes.empty() ? 0 : scopes.rbegin()->first + 1;
  if (count > kMaxScopes)
    throw Error(ErrorCode::kUsage, "scope " + std::to_string(count - 1) + " of kernel '" +
                                       kernel.name + "' is more than records can name");
  kernel.scope_names.resize(count);
  kernel.scope_parents.assign(count, kNoScope);
  for (auto &[id, name] : scopes)
    kernel.scope_names[id] = name;
  for (auto [id, parent] : parents)
    if (id < count && parent < count)
      kernel.scope_parents[id] = parent;
}

void add_kernel(PythonRuntime &self, uint64_t function, const py::dict &layout) {
  auto kernel = std::make_shared<InstrumentedKernel>();
  kernel->name = entry<std::string>(layout, "name", "");
  kernel->scratch_bytes = entry<uint32_t>(layout, "scratch_bytes", 0);
  kernel->warps = entry<uint32_t>(layout, "warps", 0);
  kernel->warp_ids = entry<std::vector<uint32_t>>(layout, "warp_ids", {});
  kernel->has_short_clock = entry<bool>(layout, "short_clock", false);
  kernel->is_private = entry<bool>(layout, "private", false);
  kernel->record_cost_cycles = entry<uint32_t>(layout, "record_cost", 0);
  for (const auto &range :
       entry<std::vector<std::pair<uint32_t, uint32_t>>>(layout, "programs", {}))
    kernel->programs.push_back(range);
  set_scopes(*kernel, layout);
  kernel->finish();
  self.runtime->add_kernel(function, std::move(kernel));
}

py::list list_timers(const std::vector<DeviceTimerFacts> &timers) {
  py::list listed;
  for (const DeviceTimerFacts &timer : timers) {
    py::dict each;
    each["device"] = timer.device;
    each["readings"] = timer.readings;
    if (timer.newest.is_known()) {
      each["offset_ns"] = timer.newest.offset_ns;
      each["uncertainty_ns"] = timer.newest.uncertainty_ns;
      each["drift_ppm"] = timer.drift_ppm;
    }
    if (!timer.failure.empty())
      each["failure"] = timer.failure;
    listed.append(each);
  }
  return listed;
}

py::dict runtime_facts(const PythonRuntime &self) {
  InstrumentationFacts facts = self.runtime->facts();
  py::dict listed;
  listed["launches"] = facts.launches;
  listed["failed_launches"] = facts.failed;
  listed["abandoned_launches"] = facts.abandoned;
  listed["device_bytes"] = facts.device_bytes;
  listed["graph_bytes"] = facts.graph_bytes;
  listed["trace_waits"] = facts.timeline.waits;
  listed["pinned_bytes"] = facts.timeline.pinned_bytes;
  listed["clock_mhz"] = facts.timeline.clock_hz / 1e6;
  listed["device_timers"] = list_timers(facts.timeline.timers);
  return listed;
}

/// The sums of the kernel and of its scopes; None when no launch of it was recorded.
py::object take(PythonRuntime &self, uint64_t function, uint64_t stream) {
  std::optional<HarvestedTotals> taken;
  {
    py::gil_scoped_release release;
    taken = self.runtime->take(function, reinterpret_cast<void *>(stream));
  }
  if (!taken)
    return py::none();
  return py::make_tuple(shown(taken->totals), shown(taken->scopes));
}

py::object read_records(PythonRuntime &self, uint64_t stream) {
  std::optional<std::vector<std::byte>> bytes;
  {
    py::gil_scoped_release release;
    bytes = self.runtime->read_open(reinterpret_cast<void *>(stream));
  }
  if (!bytes)
    return py::none();
  return py::bytes(reinterpret_cast<const char *>(bytes->data()), bytes->size());
}

std::unique_ptr<PythonRuntime> make_runtime(size_t byte_limit, bool timeline,
                                            size_t addressable_bytes) {
  InstrumentationOptions options;
  options.byte_limit = byte_limit;
  options.timeline = timeline;
  if (addressable_bytes != 0)
    options.addressable_bytes = addressable_bytes;
  return std::make_unique<PythonRuntime>(options);
}

// The profile buffer of an instrumented kernel from Python, handed to sessions.

/// A layout as Python gives it, with its warps.
struct OwnedLayout {
  BufferLayout layout;
  std::vector<uint32_t> warp_ids;
};

OwnedLayout read_layout(const py::dict &attributes) {
  OwnedLayout owned;
  BufferLayout &layout = owned.layout;
  for (auto [key, value] : attributes) {
    auto name = key.cast<std::string>();
    if (name == "scratch_bytes")
      layout.scratch_bytes = value.cast<uint32_t>();
    else if (name == "warps")
      layout.warps = value.cast<uint32_t>();
    else if (name == "warp_ids")
      owned.warp_ids = value.cast<std::vector<uint32_t>>();
    else if (name == "scopes")
      layout.scopes = value.cast<uint32_t>();
    else if (name == "short_clock")
      layout.has_short_clock = value.cast<bool>();
    else if (name == "record_cost_cycles")
      layout.record_cost_cycles = value.cast<uint32_t>();
    else
      throw Error(ErrorCode::kUsage,
                  "unknown buffer attribute '" + name +
                      "'; choose scratch_bytes, warps, warp_ids, scopes, short_clock or "
                      "record_cost_cycles");
  }
  layout.warp_ids = owned.warp_ids;
  if (std::string fault = layout.fault(); !fault.empty())
    throw Error(ErrorCode::kUsage, "such a profile buffer cannot be read: " + fault);
  return owned;
}

std::span<const std::byte> bytes_of(const py::bytes &buffer) {
  std::string_view view(buffer);
  return {reinterpret_cast<const std::byte *>(view.data()), view.size()};
}

/// Names and parents of scopes, during one call.
struct OwnedScopes {
  std::vector<std::string> names;
  std::vector<CycleScope> scopes;
};

OwnedScopes read_scopes(const py::sequence &given, const BufferLayout &layout) {
  OwnedScopes owned;
  for (py::handle item : given) {
    auto pair = item.cast<py::tuple>();
    py::object name = pair[0], parent = pair[1];
    owned.names.emplace_back(PythonText(name.ptr(), "name").text());
    owned.scopes.push_back({nullptr, parent.is_none() ? kNoScope : parent.cast<uint32_t>()});
  }
  for (size_t id = 0; id < owned.names.size(); ++id) // their addresses are final now
    owned.scopes[id].name = owned.names[id].c_str();
  if (owned.scopes.size() != layout.scopes)
    throw Error(ErrorCode::kUsage, "the buffer's layout has " + std::to_string(layout.scopes) +
                                       " scopes, but " + std::to_string(owned.scopes.size()) +
                                       " are named");
  return owned;
}

/// Adds the buffer of one launch at the calling thread's place, to trees and timelines.
void emit_cycles(const std::string &kernel, const py::bytes &buffer, const py::dict &layout,
                 const py::sequence &scopes, uint64_t clock_hz) {
  OwnedLayout owned = read_layout(layout);
  OwnedScopes named = read_scopes(scopes, owned.layout);
  std::span<const std::byte> bytes = bytes_of(buffer);
  py::gil_scoped_release release;
  KernelTotals totals{};
  std::vector<ScopeTotals> sums(owned.layout.scopes, empty_scope_totals());
  reduce(bytes, owned.layout, totals, sums);
  CycleRecord record;
  record.at = capture_current();
  record.kernel = kernel.c_str();
  record.warps = owned.layout.segments();
  record.scopes = named.scopes;
  record.totals = &totals;
  record.scope_totals = sums.data();
  TimelineRows rows(owned.layout.has_short_clock);
  KernelTotals unused{};
  decode(bytes, owned.layout, rows, unused);
  TimelineRecord timeline;
  timeline.at = record.at;
  timeline.kernel = record.kernel;
  timeline.clock_hz = clock_hz;
  timeline.scopes = record.scopes;
  timeline.programs = rows.programs;
  timeline.instances = rows.instances;
  Aggregator::instance().complete(record);
  Aggregator::instance().complete(timeline);
}

} // namespace

void bind_instrumentation(py::module_ &module) {
  module.def("emit_cycles", &emit_cycles, py::arg("kernel"), py::arg("buffer"), py::arg("layout"),
             py::arg("scopes"), py::arg("clock_hz") = 0, py::pos_only());
  g_buffer_type = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&kBufferSpec));
  if (!g_buffer_type)
    throw py::error_already_set();
  const InstrumentationOptions defaults;
  py::class_<PythonRuntime>(module, "InstrumentationRuntime")
      .def(py::init(&make_runtime), py::kw_only(), py::arg("byte_limit") = defaults.byte_limit,
           py::arg("trace") = false, py::arg("addressable_bytes") = 0)
      .def(
          "start", [](PythonRuntime &self) { self.runtime->start(); }, Unlocked())
      .def(
          "flush", [](PythonRuntime &self) { self.runtime->flush(); }, Unlocked())
      .def(
          "stop", [](PythonRuntime &self) { self.runtime->stop(); }, Unlocked())
      .def("facts", &runtime_facts)
      .def("add_kernel", &add_kernel, py::arg("function"), py::arg("layout"))
      .def(
          "add_plain",
          [](PythonRuntime &self, uint64_t function) { self.runtime->add_plain(function); },
          py::arg("function"))
      .def(
          "remove_kernel",
          [](PythonRuntime &self, uint64_t function) { self.runtime->remove_kernel(function); },
          py::arg("function"))
      .def("read_records", &read_records, py::arg("stream"))
      .def("take", &take, py::arg("function"), py::arg("stream"))
      .def(
          "is_capturing",
          [](PythonRuntime &self, uint64_t stream) {
            return self.runtime->is_capturing(reinterpret_cast<void *>(stream));
          },
          py::arg("stream"))
      .def_property_readonly("allocator", [](PythonRuntime &self) { return self.allocator; })
      .def_property_readonly("launch_exit", [](PythonRuntime &self) { return self.exit; });
}

} // namespace proton
