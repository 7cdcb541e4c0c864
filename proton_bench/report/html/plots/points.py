"""Where kernels stand in a roofline: their operations per byte and per second.

Bytes are those that counters measured, else those that launches name. Operations are those that
launches name, else what busy pipes did at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.metrics.measured_work import (
    Amount,
    busiest_pipe_seconds,
    dram_bytes,
    measured_work_names,
    named_and_moved,
    pipe_flops,
    size_text,
    traffic_text,
)
from proton_bench.analysis.metrics.roofline import Roofline, own_values, roofline
from proton_bench.errors import MetricError
from proton_bench.model.profile import Profile
from proton_bench.report.html.plots.axes import scaled
from proton_bench.support.text import visible

__all__ = ["KnownWork", "PlottedKernel", "known_work", "plotted_kernel"]

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PlottedKernel:
    """Where a kernel stands.

    Attributes:
        name: Its name, visible.
        intensity: Operations per byte.
        rate: Operations per second.
        seconds: Its time.
        distance: Its time / its attainable time.
        bound: What bounds it: ``compute`` or ``memory``.
        source: Where its bytes come from: ``measured`` or ``named``.
        words: Its place in words.
    """

    name: str
    intensity: float
    rate: float
    seconds: float
    distance: float
    bound: str
    source: str
    words: str


@dataclass(frozen=True, slots=True, eq=False)
class KnownWork:
    """What is known of the work of each row.

    Attributes:
        named: What launches name, None if nothing.
        moved: Bytes that counters measured, None without them.
        done: Operations by counters, None without them.
        pipe_seconds: Least time of these operations.
        named_bytes: Bytes that launches name, and where they are comparable with ``moved``.
    """

    named: Roofline | None
    moved: Amount | None
    done: Amount | None
    pipe_seconds: Floats
    named_bytes: tuple[Floats, Flags] | None


def known_work(profile: Profile) -> KnownWork | None:
    """Return the work of the rows of a flat profile, None if nothing is known."""
    try:
        named = roofline(profile)
    except MetricError:
        named = None
    known = measured_work_names(profile)
    moved = dram_bytes(profile) if "dram_bytes" in known else None
    done = pipe_flops(profile) if "pipe_flops" in known else None
    if named is None and (moved is None or done is None):
        return None
    compared = None
    if "traffic" in known:
        named_bytes, amount = named_and_moved(profile)
        compared = named_bytes, amount.valid & (named_bytes > 0)
    least = np.zeros(len(profile)) if done is None else busiest_pipe_seconds(profile)
    return KnownWork(named, moved, done, least, compared)


def plotted_kernel(
    profile: Profile, work: KnownWork, row: int, *, peaks: Mapping[str, float]
) -> PlottedKernel | None:
    """Return a row as a point, None if its operations or bytes are not known."""
    named, moved, done = work.named, work.moved, work.done
    is_named = named is not None and bool(named.valid[row])
    flops, time, at_most = 0.0, 0.0, ""
    compute, memory = 0.0, 0.0
    if named is not None and is_named:
        flops, time = float(named.operations[row]), float(named.time_seconds[row])
        compute = _least_compute(profile, row, peaks)
    if flops <= 0 and done is not None and done.valid[row] and done.values[row] > done.halves[row]:
        flops, time, at_most = float(done.values[row]), float(done.seconds[row]), "at most "
        compute = float(work.pipe_seconds[row])
    size, source, words = float(named.moved_bytes[row]) if named is not None else 0.0, "named", ""
    if moved is not None and moved.valid[row]:
        size, source = float(moved.values[row]), "measured"
        time = time or float(moved.seconds[row])
        words = _moved_words(work, row)
        if size <= moved.halves[row]:  # as good as none, and a place further right says nothing
            size += float(moved.halves[row])
    memory = size / peaks["bytes"]
    if flops <= 0 or size <= 0 or time <= 0:
        return None
    return PlottedKernel(
        name=visible(profile.name(row)),
        intensity=flops / size,
        rate=flops / time,
        seconds=time,
        distance=time / max(compute, memory),
        bound="compute" if compute >= memory else "memory",
        source=source,
        words=f"{at_most}{scaled(flops / time)}FLOP/s at {flops / size:.3g} FLOP per byte{words}",
    )


def _least_compute(profile: Profile, row: int, peaks: Mapping[str, float]) -> float:
    """Return the least time of the operations that launches name."""
    seconds = 0.0
    for name, rate in peaks.items():
        own = own_values(profile, name) if name != "bytes" else None
        seconds += float(own[row]) / rate if own is not None else 0.0
    return seconds


def _moved_words(work: KnownWork, row: int) -> str:
    assert work.moved is not None
    amount, half = float(work.moved.values[row]), float(work.moved.halves[row])
    if work.named_bytes is not None and work.named_bytes[1][row]:
        return f" ({traffic_text(float(work.named_bytes[0][row]), amount, half)})"
    return f" (DRAM moved {size_text(amount)} +-{size_text(half)})"
