"""What faster work of a GPU can save at most: the time in which the host waits for it.

A run cannot be shorter than what its host does besides waiting, whatever its kernels take. That is
known where the main thread was sampled and operators were recorded, one device was used, and its
queue never was full, because then a launch waits too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from proton_bench.analysis.accounting.device_use import DeviceVerdict
from proton_bench.analysis.accounting.host_time import HOST_WALL
from proton_bench.analysis.accounting.own_cost import own_cost
from proton_bench.analysis.metrics.formula import SECONDS, find_metric
from proton_bench.model.metrics.metric import MetricSpec
from proton_bench.model.profile import Profile

__all__ = [
    "SYNC_OPS",
    "host_limit_ns",
    "idle_cost_ns",
    "most_sampled_ns",
    "outermost",
    "recorded_in_ns",
    "sampled_in_ns",
]

# Operators and calls that wait for the device.
SYNC_OPS = frozenset(
    {
        *("aten::item", "aten::_local_scalar_dense", "aten::is_nonzero", "aten::nonzero"),
        *("aten::equal", "cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize"),
        *("cudaMalloc", "cudaFree", "cudaHostAlloc"),
    }
)
# These wait if they copy to the host.
_MAY_WAIT = SYNC_OPS | {"aten::copy_", "aten::_to_copy"}
_MOST_QUEUED = 800.0  # launches on average; CUDA queues at most 1024
_STANDARD_ERRORS = 2.0
_COST_ERROR = 1.5  # the estimate of our own cost may be too small by this factor


def host_limit_ns(profile: Profile, device: DeviceVerdict, *, in_sync_ns: float) -> float:
    """Return the most that faster work of the only device can save in ns, infinity if unknown.

    Args:
        profile: The profile as it was recorded.
        device: Its device.
        in_sync_ns: Sampled time of the host in functions that wait for the device.
    """
    use, context = device.use, profile.provenance.get("context")
    if not most_sampled_ns(profile, 0.0):
        return math.inf
    if not isinstance(context, str) or "ops" not in context or not (use.launches and use.wall_ns):
        return math.inf
    if use.latency_max_ns * (use.launches / use.wall_ns) > _MOST_QUEUED:
        return math.inf
    waiting_ns = most_sampled_ns(profile, in_sync_ns + sampled_in_ns(profile, _MAY_WAIT))
    return waiting_ns + _COST_ERROR * idle_cost_ns(profile)


def most_sampled_ns(profile: Profile, sampled_ns: float) -> float:
    """Return what a sampled time of the host is at most in ns, 0 if the host was not sampled.

    That is two standard errors more. A sample counts for one period, and the standard error of a
    count is its square root.
    """
    rate_hz = profile.provenance.get("host_rate_hz")
    if not (isinstance(rate_hz, int | float) and rate_hz > 0 and HOST_WALL in profile.columns):
        return 0.0
    period_ns = 1e9 / rate_hz
    return sampled_ns + _STANDARD_ERRORS * math.sqrt(max(sampled_ns, period_ns) * period_ns)


def idle_cost_ns(profile: Profile) -> float:
    """Return how much longer the host took because it was recorded, by the file, in ns."""
    cost = own_cost(profile)
    return cost.cost_ns if cost is not None else 0.0


def sampled_in_ns(profile: Profile, names: Collection[str]) -> float:
    """Return the sampled time of the host in operators, 0 if it was not sampled."""
    column = profile.columns.get(HOST_WALL)
    if column is None or not column.kind.is_number:
        return 0.0
    wall_ns = profile.inclusive(HOST_WALL)
    return sum(float(wall_ns[row]) for row in outermost(profile, names))


def recorded_in_ns(profile: Profile, names: Collection[str]) -> float:
    """Return the time that operators took by their own records, 0 if these have no times."""
    rows = list(outermost(profile, names))
    return max(_of_ranges_ns(profile, rows), _on_cpu_ns(profile, rows))


def _of_ranges_ns(profile: Profile, rows: Sequence[int]) -> float:
    name = find_metric("wall", profile.columns)
    if name is None or not profile.columns[name].kind.is_number:
        return 0.0
    column = profile.columns[name]
    unit = SECONDS.get(MetricSpec(name).unit, 0.0) / SECONDS["ns"]
    return unit * sum(float(column.values[row]) for row in rows if column.known[row])


def _on_cpu_ns(profile: Profile, rows: Sequence[int]) -> float:
    """Return the time of these rows and those below them that is not of a device."""
    name = find_metric("time", profile.columns)
    if name is None or not profile.columns[name].kind.is_number:
        return 0.0
    column = profile.columns[name]
    on_cpu = np.array([each.kind == "CPU" for each in profile.devices] + [False])
    known = column.known & on_cpu[profile.device_rows]
    unit = SECONDS.get(MetricSpec(name).unit, 0.0) / SECONDS["ns"]
    return unit * sum(
        float(column.values[row:end][known[row:end]].sum())
        for row, end in ((row, int(profile.subtree_end[row])) for row in rows)
    )


def outermost(profile: Profile, names: Collection[str]) -> Iterator[int]:
    """Yield the rows with one of these names that are below no other such row."""
    row, size = 1, len(profile)
    while row < size:
        if profile.name(row) in names:
            yield row
            row = int(profile.subtree_end[row])
        else:
            row += 1
