// Values that the program gives: each becomes a record in the log of the thread that gives it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "correlation/graph_launches.h"
#include "record/record.h"

namespace proton {

/// Whether values of another type than before are refused, as upstream does also for an integer
/// after a double. Else numbers mix. [any thread]
void check_value_types(bool checks) noexcept;
/// Notes values, without waiting for a lock of the aggregator: what does not fit is counted when it
/// is consumed. Throws Error(kMetric) for a list that is known not to fit.
///   are_shown: the event of a scope of the calling thread shows them. [any thread]
void give_values(const Capture &at, std::span<const UserMetric> metrics, bool are_shown);
/// The same, also where the calling thread captures a graph: then each launch of the graph adds
/// them. Throws Error(kMetric) for values that a graph leaves where none is captured.
void give_values_or_capture(const Capture &at, const std::vector<UserMetric> &metrics);
/// Notes values at the place of a launch, which is then taken back. [any thread]
void give_launch_values(uint64_t correlation_id, std::span<const UserMetric> metrics);

} // namespace proton
