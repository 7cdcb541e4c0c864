// Profile buffers of instrumented kernels from Python: decoded, reduced, and handed to sessions.
#include <pybind11/stl.h>

#include "aggregate/consumer/aggregator.h"
#include "bindings/module/bindings.h"
#include "bindings/values/cycle_dicts.h"
#include "bindings/values/python_text.h"
#include "collector/instrumentation/decoder/host_decoder.h"
#include "context/thread/current.h"
#include "record/timeline_record.h"
#include "support/error.h"

namespace py = pybind11;

namespace proton {
namespace {

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

/// Keeps what it visits, as Python values.
class PythonVisitor final : public BufferVisitor {
public:
  void begin_program(const BlockHeader &header) override {
    programs.append(py::make_tuple(header.program, header.processor, header.init_ns,
                                   header.pre_final_ns, header.post_final_ns, header.is_lossy));
  }
  void instance(const BlockHeader &header, const ScopeInstance &found) override {
    instances.append(py::make_tuple(header.program, found.scope, found.warp, found.end_warp,
                                    found.is_async, found.start_clock, found.end_clock,
                                    found.cycles));
  }
  py::list programs;
  py::list instances;
};

py::tuple decode_records(const py::bytes &buffer, const py::dict &layout) {
  OwnedLayout owned = read_layout(layout);
  PythonVisitor visitor;
  KernelTotals totals{};
  decode(bytes_of(buffer), owned.layout, visitor, totals);
  py::dict counts = shown(totals);
  counts.attr("pop")("launches");
  return py::make_tuple(visitor.programs, visitor.instances, counts);
}

py::tuple reduce_records(const py::bytes &buffer, const py::dict &layout) {
  OwnedLayout owned = read_layout(layout);
  KernelTotals totals{};
  std::vector<ScopeTotals> scopes(owned.layout.scopes, empty_scope_totals());
  reduce(bytes_of(buffer), owned.layout, totals, scopes);
  return py::make_tuple(shown(totals), shown(scopes));
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

void bind_cycle_records(py::module_ &module) {
  module.def("decode_records", &decode_records, py::arg("buffer"), py::arg("layout"),
             py::pos_only());
  module.def("reduce_records", &reduce_records, py::arg("buffer"), py::arg("layout"),
             py::pos_only());
  module.def("emit_cycles", &emit_cycles, py::arg("kernel"), py::arg("buffer"), py::arg("layout"),
             py::arg("scopes"), py::arg("clock_hz") = 0, py::pos_only());
}

} // namespace proton
