#include "bindings/values/cycle_dicts.h"

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

} // namespace

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

} // namespace proton
