"""What each call path did of the counts of ranges: one launch, or all work of an outermost scope.

A range begins before its kernels and ends after them, so its own duration is longer than theirs:
13 us for a kernel of 3 us. What it counted is divided by the time of the kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.recording.counters.bursts import Burst, bursts_by_device, readings_of
from proton_bench.recording.counters.join import DeviceEstimates
from proton_bench.recording.counters.metric_sets import RANGE_TIME

__all__ = ["join_ranges"]

Values = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


def join_ranges(
    ranges: Iterable[Mapping[str, Any]], metrics: Sequence[str]
) -> list[DeviceEstimates]:
    """Return the values of each device, with errors of 0.

    Kernels that share a range share its counts by their times.

    Args:
        ranges: What ``take_bursts`` of a native session returns: each sample is a range.
        metrics: NVIDIA's names of what was counted; `RANGE_TIME` is one of them.
    """
    found = [
        _of_device(device, of_device, metrics)
        for device, of_device in sorted(bursts_by_device(ranges).items())
    ]
    return [each for each in found if each is not None]


def _of_device(
    device: int, bursts: Sequence[Burst], metrics: Sequence[str]
) -> DeviceEstimates | None:
    parts = [_parts(burst, metrics) for burst in bursts]
    nodes, index = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
    own = nodes >= 0
    if not own.any():
        return None
    kernel_ns = np.concatenate([part[1] for part in parts])
    busy_ns = np.concatenate([part[2] for part in parts])
    time_ns = np.bincount(index, kernel_ns).astype(np.float64)
    readings = readings_of(bursts[0], metrics)
    shares = {
        name: np.minimum(np.bincount(index, busy_ns[:, place]) / time_ns, 1.0)
        for place, name in enumerate(readings.quantities)
    }
    clocks = None
    if readings.cycles is not None:
        clocks = np.bincount(index, np.concatenate([part[3] for part in parts])) / time_ns
    return DeviceEstimates(
        device,
        nodes[own].astype(np.uint32),
        time_ns[own],
        time_ns[own],
        None if clocks is None else clocks[own],
        {name: values[own] for name, values in shares.items()},
        {name: np.zeros(int(own.sum())) for name in shares},
    )


def _parts(burst: Burst, metrics: Sequence[str]) -> tuple[Places, Values, Values, Values]:
    """Return node and time of each kernel in a range, its busy times, and clock x time."""
    readings = readings_of(burst, metrics)
    range_ns = burst.counts[:, list(metrics).index(RANGE_TIME)]
    length_ns = (burst.end_ns - burst.start_ns).astype(np.float64)
    cycles = np.zeros(len(length_ns)) if readings.cycles is None else readings.cycles
    base = np.where(readings.in_cycles, cycles[:, None], length_ns[:, None])
    busy_ns = readings.amounts / np.maximum(base, 1e-9) * range_ns[:, None]
    middle = (burst.kernel_start_ns + burst.kernel_end_ns) // 2
    sample = np.searchsorted(burst.start_ns, middle, "right") - 1
    inside = (sample >= 0) & (middle < burst.end_ns[sample]) & (range_ns[sample] > 0)
    sample, nodes = sample[inside], burst.nodes[inside]
    kernel_ns = (burst.kernel_end_ns - burst.kernel_start_ns)[inside].astype(np.float64)
    of_range_ns = np.bincount(sample, kernel_ns, minlength=len(length_ns))
    part = kernel_ns / of_range_ns[sample]
    clock = cycles[sample] / range_ns[sample]
    return nodes, kernel_ns, busy_ns[sample] * part[:, None], clock * kernel_ns
