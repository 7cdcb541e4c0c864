// The collector of NVIDIA GPUs.
#include <pybind11/stl.h>

#include <functional>
#include <tuple>

#include "aggregate/aggregator.h"
#include "bindings/bindings.h"
#include "collector/cupti/cupti_collector.h"
#include "collector/cupti/kernel_codes.h"

namespace py = pybind11;

namespace proton {
namespace {

using Unlocked = py::call_guard<py::gil_scoped_release>;
using Candidate = std::tuple<std::string, std::string, bool>;

std::unique_ptr<CuptiCollector> make_collector(const std::vector<Candidate> &candidates,
                                               size_t buffer_bytes, uint32_t flush_period_ms,
                                               bool copies, bool whole_graphs, bool nvtx,
                                               bool vendor_clock, bool hardware_trace,
                                               bool finalizes) {
  CuptiOptions options;
  for (const auto &[path, origin, only_if_loaded] : candidates)
    options.candidates.push_back({path, origin, only_if_loaded});
  options.buffer_bytes = buffer_bytes;
  options.flush_period_ms = flush_period_ms;
  options.copies = copies;
  options.whole_graphs = whole_graphs;
  options.nvtx = nvtx;
  options.vendor_clock = vendor_clock;
  options.hardware_trace = hardware_trace;
  options.finalizes = finalizes;
  return std::make_unique<CuptiCollector>(Aggregator::instance(), std::move(options));
}

py::dict list_facts(const CuptiCollector &collector) {
  CuptiFacts facts;
  {
    py::gil_scoped_release release;
    facts = collector.facts();
  }
  py::dict listed;
  listed["library"] = facts.library;
  listed["library_origin"] = facts.origin;
  listed["version"] = facts.version;
  listed["driver"] = facts.driver;
  listed["clock"] = facts.clock;
  listed["clock_drift_ns"] = facts.clock_drift_ns;
  listed["foreign_buffers"] = facts.foreign_buffers;
  listed["taken_buffers"] = facts.taken_buffers;
  py::list devices;
  for (const auto &[index, device] : facts.devices) {
    py::dict entry;
    entry["index"] = index;
    entry["name"] = device.driver.name;
    entry["uuid"] = device.driver.uuid;
    entry["tick_ns"] = device.tick_ns;
    devices.append(entry);
  }
  listed["devices"] = devices;
  return listed;
}

/// Texts are hashed; the result is what VariantRecord holds.
uint64_t hash_of(const py::object &hash) {
  if (py::isinstance<py::str>(hash))
    return std::hash<std::string>{}(hash.cast<std::string>());
  return hash.cast<uint64_t>();
}

void set_kernel_hash(const py::object &kernel, const py::object &hash, const std::string &config) {
  KernelCodes &codes = KernelCodes::instance();
  if (py::isinstance<py::str>(kernel))
    codes.set_name(kernel.cast<std::string>(), hash_of(hash));
  else
    codes.set(reinterpret_cast<const void *>(kernel.cast<uintptr_t>()), hash_of(hash), config);
}

} // namespace

void bind_cupti(py::module_ &module) {
  const CuptiOptions defaults;
  py::class_<CuptiCollector>(module, "CuptiCollector")
      .def(py::init(&make_collector), py::arg("candidates"), py::kw_only(),
           py::arg("buffer_bytes") = defaults.buffer_bytes,
           py::arg("flush_period_ms") = defaults.flush_period_ms, py::arg("copies") = false,
           py::arg("whole_graphs") = false, py::arg("nvtx") = false,
           py::arg("vendor_clock") = false, py::arg("hardware_trace") = false,
           py::arg("finalizes") = false)
      .def("start", &CuptiCollector::start, Unlocked())
      .def("flush", &CuptiCollector::flush, Unlocked())
      .def("stop", &CuptiCollector::stop, Unlocked())
      .def("facts", &list_facts);
  module.def("set_kernel_hash", &set_kernel_hash, py::arg("kernel"), py::arg("hash"),
             py::arg("config") = "", py::pos_only());
}

} // namespace proton
