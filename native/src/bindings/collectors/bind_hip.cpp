// The collectors of AMD GPUs: rocprofiler-sdk, and roctracer.
#include <pybind11/stl.h>

#include "aggregate/consumer/aggregator.h"
#include "bindings/module/bindings.h"
#include "bindings/values/python_values.h"
#include "collector/rocprofiler/rocprofiler_collector.h"
#include "collector/roctracer/roctracer_collector.h"

namespace py = pybind11;

namespace proton {
namespace {

using Unlocked = py::call_guard<py::gil_scoped_release>;
using Candidates = std::vector<ListedCandidate>;

/// Where the libraries may be.
struct RocmLibraries {
  Candidates profiler, hip, hsa, roctx;
};

template <typename GpuCollector>
std::unique_ptr<GpuCollector> make_hip_collector(const RocmLibraries &libraries,
                                                 size_t buffer_bytes, uint32_t flush_period_ms,
                                                 bool copies, bool ranges) {
  HipOptions options;
  options.candidates = make_candidates(libraries.profiler);
  options.hip_candidates = make_candidates(libraries.hip);
  options.hsa_candidates = make_candidates(libraries.hsa);
  options.roctx_candidates = make_candidates(libraries.roctx);
  options.buffer_bytes = buffer_bytes;
  options.flush_period_ms = flush_period_ms;
  options.copies = copies;
  options.roctx = ranges;
  return std::make_unique<GpuCollector>(Aggregator::instance(), std::move(options));
}

template <typename GpuCollector> py::dict hip_facts(const GpuCollector &collector) {
  HipFacts facts;
  {
    py::gil_scoped_release release;
    facts = collector.facts();
  }
  py::dict listed;
  listed["library"] = facts.library;
  listed["library_origin"] = facts.origin;
  listed["version"] = facts.version;
  listed["driver"] = facts.driver;
  listed["clock_drift_ns"] = facts.clock_drift_ns;
  listed["buffer_bytes"] = facts.buffer_bytes;
  listed["devices"] = list_devices(facts.devices);
  return listed;
}

template <typename GpuCollector> void bind_collector(py::module_ &module, const char *name) {
  const HipOptions defaults;
  py::class_<GpuCollector>(module, name)
      .def(py::init(&make_hip_collector<GpuCollector>), py::arg("libraries"), py::kw_only(),
           py::arg("buffer_bytes") = defaults.buffer_bytes,
           py::arg("flush_period_ms") = defaults.flush_period_ms, py::arg("copies") = false,
           py::arg("ranges") = false)
      .def("start", &GpuCollector::start, Unlocked())
      .def("flush", &GpuCollector::flush, Unlocked())
      .def("stop", &GpuCollector::stop, Unlocked())
      .def("facts", &hip_facts<GpuCollector>);
}

} // namespace

void bind_hip(py::module_ &module) {
  py::class_<RocmLibraries>(module, "RocmLibraries")
      .def(py::init(
               [](const Candidates &profiler, const Candidates &hip, const Candidates &hsa,
                  const Candidates &roctx) { return RocmLibraries{profiler, hip, hsa, roctx}; }),
           py::kw_only(), py::arg("profiler"), py::arg("hip"), py::arg("hsa"), py::arg("roctx"));
  bind_collector<RocprofilerCollector>(module, "RocprofilerCollector");
  bind_collector<RoctracerCollector>(module, "RoctracerCollector");
}

} // namespace proton
