// The collector of NVIDIA GPUs.
#include <pybind11/stl.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "aggregate/consumer/aggregator.h"
#include "bindings/module/bindings.h"
#include "bindings/values/python_values.h"
#include "collector/cupti/control/cupti_collector.h"
#include "collector/cupti/counters/sampling_service.h"
#include "collector/cupti/pc_sampling/line_table.h"
#include "collector/gpu/work/code_text.h"
#include "collector/gpu/work/kernel_table.h"
#include "driver/cupti/cupti_pc_sampling.h"
#include "record/code_table.h"
#include "support/error.h"

namespace py = pybind11;

namespace proton {
namespace {

using Unlocked = py::call_guard<py::gil_scoped_release>;

std::unique_ptr<CuptiCollector>
make_cupti_collector(const std::vector<ListedCandidate> &candidates, size_t buffer_bytes,
                     uint32_t flush_period_ms, bool copies, bool whole_graphs, bool nvtx,
                     bool vendor_clock, bool hardware_trace, bool shared,
                     const PcSamplingOptions *pc_sampling, const CounterOptions *counters) {
  CuptiOptions options;
  options.candidates = make_candidates(candidates);
  options.buffer_bytes = buffer_bytes;
  options.flush_period_ms = flush_period_ms;
  options.copies = copies;
  options.whole_graphs = whole_graphs;
  options.nvtx = nvtx;
  options.vendor_clock = vendor_clock;
  options.hardware_trace = hardware_trace;
  options.shared = shared;
  if (pc_sampling)
    options.pc_sampling = *pc_sampling;
  if (counters)
    options.counters = *counters;
  return std::make_unique<CuptiCollector>(Aggregator::instance(), std::move(options));
}

constexpr std::pair<const char *, PcSamplingMode> kSamplingModes[] = {
    {"continuous", PcSamplingMode::kContinuous},
    {"scope", PcSamplingMode::kScope},
    {"launch", PcSamplingMode::kLaunch},
};

PcSamplingOptions make_sampling(const std::string &mode, uint32_t period_log2, uint32_t drain_ms,
                                size_t hardware_bytes) {
  PcSamplingOptions options{PcSamplingMode::kOff, period_log2, drain_ms, hardware_bytes};
  for (const auto &[name, value] : kSamplingModes)
    if (mode == name)
      options.mode = value;
  bool is_period = period_log2 == 0 || (period_log2 >= cupti::kSmallestPeriodLog2 &&
                                        period_log2 <= cupti::kLargestPeriodLog2);
  if (options.mode == PcSamplingMode::kOff)
    throw Error(ErrorCode::kUsage,
                "unknown mode of PC sampling '" + mode + "'; choose continuous, scope or launch");
  if (!is_period)
    throw Error(ErrorCode::kUsage, "a period of PC sampling of 2^" + std::to_string(period_log2) +
                                       " cycles is out of range; choose 2^5 to 2^31, or 0 for an "
                                       "automatic one");
  if (drain_ms == 0 || hardware_bytes == 0)
    throw Error(ErrorCode::kUsage, "drain_ms and hardware_bytes of PC sampling are above 0");
  return options;
}

py::dict list_sampling(const PcSamplingFacts &facts) {
  py::dict listed;
  listed["period_cycles"] = facts.period_cycles;
  listed["is_automatic"] = facts.is_automatic;
  listed["attribution"] = facts.attribution;
  listed["samples"] = facts.samples;
  listed["not_issued"] = facts.not_issued;
  listed["dropped"] = facts.dropped;
  listed["of_driver_kernels"] = facts.of_driver_kernels;
  listed["own"] = facts.own;
  listed["total"] = facts.total;
  listed["doubled"] = facts.doubled;
  listed["without_line"] = facts.without_line;
  listed["contexts"] = facts.contexts;
  listed["refused_contexts"] = facts.refused_contexts;
  listed["error"] = facts.error;
  listed["cubins"] = facts.cubins;
  listed["cubin_bytes"] = facts.cubin_bytes;
  listed["most_bytes"] = facts.most_bytes;
  listed["drain_ns"] = facts.drain_ns;
  listed["publish_ns"] = facts.publish_ns;
  return listed;
}

CounterOptions make_counters(std::vector<std::vector<std::string>> sets, uint32_t interval_ns,
                             uint32_t burst_ms, uint32_t pause_ms, size_t hardware_bytes) {
  CounterOptions options{std::move(sets), interval_ns, burst_ms, pause_ms, hardware_bytes};
  bool has_empty = std::any_of(options.sets.begin(), options.sets.end(),
                               [](const auto &metrics) { return metrics.empty(); });
  if (options.sets.empty() || has_empty)
    throw Error(ErrorCode::kUsage, "counters need the name of a metric at least");
  if (interval_ns == 0 || burst_ms == 0 || pause_ms == 0 || hardware_bytes == 0)
    throw Error(ErrorCode::kUsage,
                "interval_ns, burst_ms, pause_ms and hardware_bytes of counters are above 0");
  return options;
}

py::dict list_counters(const CounterFacts &facts) {
  py::dict listed;
  listed["metrics"] = facts.metrics;
  listed["interval_ns"] = facts.interval_ns;
  listed["burst_ms"] = facts.burst_ms;
  listed["pause_ns"] = facts.pause_ns;
  listed["devices"] = facts.devices;
  listed["refused_devices"] = facts.refused_devices;
  listed["error"] = facts.error;
  listed["bursts"] = facts.bursts;
  listed["samples"] = facts.samples;
  listed["covered_ns"] = facts.covered_ns;
  listed["lost_bursts"] = facts.lost_bursts;
  listed["lost_samples"] = facts.lost_samples;
  listed["full_images"] = facts.full_images;
  listed["full_buffers"] = facts.full_buffers;
  listed["thread_ns"] = facts.thread_ns;
  listed["process_ns"] = facts.process_ns;
  listed["open_ns"] = facts.open_ns;
  listed["decode_ns"] = facts.decode_ns;
  listed["info_ns"] = facts.info_ns;
  listed["evaluate_ns"] = facts.evaluate_ns;
  return listed;
}

py::dict cupti_facts(const CuptiCollector &collector) {
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
  if (facts.shared_with)
    listed["shared_with"] = *facts.shared_with;
  listed["foreign_buffers"] = facts.foreign_buffers;
  listed["taken_buffers"] = facts.taken_buffers;
  listed["devices"] = list_devices(facts.devices);
  if (facts.pc_sampling)
    listed["pc_sampling"] = list_sampling(*facts.pc_sampling);
  if (facts.counters)
    listed["counters"] = list_counters(*facts.counters);
  return listed;
}

/// The line of each instruction of a cubin, "" without one. Needs no GPU.
std::vector<py::str> find_lines(const std::vector<ListedCandidate> &candidates,
                                const py::bytes &image, const std::string &function,
                                const std::vector<uint64_t> &offsets) {
  std::string copy = image;
  std::vector<std::string> texts;
  {
    py::gil_scoped_release release;
    const CuptiLibrary library = CuptiLibrary::open(make_candidates(candidates));
    const CuptiPcSampling cupti = CuptiPcSampling::of(library);
    const std::vector<char> cubin(copy.begin(), copy.end());
    const std::string shown = demangle(function.c_str());
    for (uint64_t offset : offsets)
      texts.push_back(source_line(cupti, cubin, {function, shown}, offset));
  }
  std::vector<py::str> lines;
  for (const std::string &text : texts) // names of files may be any bytes
    lines.push_back(py::reinterpret_steal<py::str>(
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace")));
  return lines;
}

void set_kernel_hash(const py::object &kernel, const py::object &hash, const std::string &config) {
  KernelCodes &codes = KernelCodes::instance();
  if (py::isinstance<py::str>(kernel))
    codes.set_name(kernel.cast<std::string>(), read_hash(hash));
  else
    codes.set(reinterpret_cast<const void *>(kernel.cast<uintptr_t>()), read_hash(hash), config);
}

/// Counts the instructions of a code once; hash 0 is noted nowhere.
py::dict note_instructions_of(uint64_t hash, std::string_view text, const std::string &language) {
  if (language != "ptx" && language != "amdgcn")
    throw Error(ErrorCode::kUsage, "there is no assembly '" + language + "': choose ptx or amdgcn");
  const InstructionMix *known = find_instructions(hash);
  InstructionMix mix{};
  if (known) {
    mix = *known;
  } else {
    py::gil_scoped_release release;
    mix = count_instructions(text, language == "ptx" ? CodeLanguage::kPtx : CodeLanguage::kAmdGcn);
    note_instructions(hash, mix);
  }
  py::dict counts;
  for (size_t i = 0; i < mix.size(); ++i)
    if (mix[i] != 0)
      counts[py::str(std::string(kInstructionNames[i]))] = mix[i];
  return counts;
}

void bind_options(py::module_ &module) {
  const CuptiOptions defaults;
  py::class_<PcSamplingOptions>(module, "PcSamplingOptions")
      .def(py::init(&make_sampling), py::arg("mode") = "continuous", py::kw_only(),
           py::arg("period_log2") = 0, py::arg("drain_ms") = defaults.pc_sampling.drain_ms,
           py::arg("hardware_bytes") = defaults.pc_sampling.hardware_bytes)
      .def_property_readonly("mode",
                             [](const PcSamplingOptions &options) {
                               std::string mode;
                               for (const auto &[name, value] : kSamplingModes)
                                 if (options.mode == value)
                                   mode = name;
                               return mode;
                             })
      .def_readonly("period_log2", &PcSamplingOptions::period_log2)
      .def_readonly("drain_ms", &PcSamplingOptions::drain_ms)
      .def_readonly("hardware_bytes", &PcSamplingOptions::hardware_bytes);
  py::class_<CounterOptions>(module, "CounterOptions")
      .def(py::init(&make_counters), py::arg("sets"), py::kw_only(),
           py::arg("interval_ns") = defaults.counters.interval_ns,
           py::arg("burst_ms") = defaults.counters.burst_ms,
           py::arg("pause_ms") = defaults.counters.pause_ms,
           py::arg("hardware_bytes") = defaults.counters.hardware_bytes)
      .def_readonly("sets", &CounterOptions::sets)
      .def_readonly("interval_ns", &CounterOptions::interval_ns)
      .def_readonly("burst_ms", &CounterOptions::burst_ms)
      .def_readonly("pause_ms", &CounterOptions::pause_ms);
}

} // namespace

void bind_cupti(py::module_ &module) {
  const CuptiOptions defaults;
  bind_options(module);
  py::class_<CuptiCollector>(module, "CuptiCollector")
      .def(py::init(&make_cupti_collector), py::arg("candidates"), py::kw_only(),
           py::arg("buffer_bytes") = defaults.buffer_bytes,
           py::arg("flush_period_ms") = defaults.flush_period_ms, py::arg("copies") = false,
           py::arg("whole_graphs") = false, py::arg("nvtx") = false,
           py::arg("vendor_clock") = false, py::arg("hardware_trace") = false,
           py::arg("shared") = false, py::arg("pc_sampling").none(true) = py::none(),
           py::arg("counters").none(true) = py::none())
      .def(
          "start",
          [](CuptiCollector &self, uintptr_t stream, bool warns_again) {
            self.start(reinterpret_cast<void *>(stream), warns_again);
          },
          py::arg("stream") = 0, py::arg("warns_again") = true, Unlocked())
      .def("start_counters", &CuptiCollector::start_counters, py::arg("socket"), py::pos_only(),
           Unlocked())
      .def("flush", &CuptiCollector::flush, Unlocked())
      .def("stop", &CuptiCollector::stop, Unlocked())
      .def("detach", &CuptiCollector::detach, Unlocked())
      .def(
          "add_cubin",
          [](CuptiCollector &self, const py::bytes &image) {
            std::string copy = image;
            py::gil_scoped_release release;
            self.add_cubin(copy);
          },
          py::arg("image"), py::pos_only())
      .def("facts", &cupti_facts);
  module.def("source_lines", &find_lines, py::arg("candidates"), py::arg("image"),
             py::arg("function"), py::arg("offsets"), py::pos_only());
  module.def("serve_counter_samples", &serve_counter_samples, py::arg("socket"), py::pos_only(),
             Unlocked());
  module.def("set_kernel_hash", &set_kernel_hash, py::arg("kernel"), py::arg("hash"),
             py::arg("config") = "", py::pos_only());
  module.def("note_instructions", &note_instructions_of, py::arg("code_hash"), py::arg("text"),
             py::arg("language"), py::pos_only());
}

} // namespace proton
