"""Bursts of samples, as sparse matrices of the time in which each node ran in each sample."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from proton_bench.model.arrays import Floats, Integers, Mask
from proton_bench.recording.counters.metric_sets import ELAPSED_CYCLES, Basis, meaning_of


@dataclass(frozen=True, slots=True, eq=False)
class Burst:
    """Samples without gaps, in the order of time, and kernels that overlap them.

    Attributes:
        start_ns: int64[n], beginnings of samples.
        end_ns: int64[n], their ends.
        counts: float64[n, m], one column for each metric.
        nodes: int64[k], the node of each kernel; of one of another phase its complement, which is
            below zero: its counts are not those of the phase, and not of idle time either.
        kernel_start_ns: int64[k], beginnings of kernels, on the clock of the samples.
        kernel_end_ns: int64[k], their ends.
    """

    start_ns: Integers
    end_ns: Integers
    counts: Floats
    nodes: Integers
    kernel_start_ns: Integers
    kernel_end_ns: Integers

    @classmethod
    def cleaned(cls, given: Mapping[str, Any]) -> Burst:
        """Return a burst without samples and kernels that have no time, and without bad counts."""
        start, end = _times(given["start_ns"]), _times(given["end_ns"])
        counts = np.asarray(given["counts"], dtype=np.float64).reshape(len(start), -1)
        samples = np.flatnonzero((end > start) & np.isfinite(counts).all(axis=1))
        samples = samples[np.argsort(start[samples], kind="stable")]
        nodes = _times(given["nodes"])
        nodes = np.where(np.asarray(given["is_own"], dtype=np.bool_), nodes, ~nodes)
        kernel_start = _times(given["kernel_start_ns"])
        kernel_end = _times(given["kernel_end_ns"])
        kernels = np.flatnonzero(kernel_end > kernel_start)
        kernels = kernels[np.argsort(kernel_start[kernels], kind="stable")]
        return cls(
            start[samples],
            end[samples],
            counts[samples],
            nodes[kernels],
            kernel_start[kernels],
            kernel_end[kernels],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """The amounts of each sample: they add up over samples, as percentages do not.

    Attributes:
        quantities: Name of each column.
        amounts: float64[n, q], ns in which a unit was busy at its peak, or cycles of it.
        in_cycles: Which columns are cycles.
        cycles: float64[n], cycles of the multiprocessors that passed; None if it was not sampled.
    """

    quantities: tuple[str, ...]
    amounts: Floats
    in_cycles: Mask
    cycles: Floats | None


def bursts_by_device(given: Iterable[Mapping[str, Any]]) -> dict[int, list[Burst]]:
    """Return the bursts of each device in the order of time; those without a sample are left out.

    Args:
        given: Bursts of a native session (``take_bursts``).
    """
    found: dict[int, list[Burst]] = {}
    for each in given:
        burst = Burst.cleaned(each)
        if len(burst.start_ns):
            found.setdefault(int(each["device"]), []).append(burst)
    for bursts in found.values():
        bursts.sort(key=lambda burst: int(burst.start_ns[0]))
    return found


def readings_of(burst: Burst, metrics: Sequence[str]) -> Readings:
    """Return the use of units from the counts of a burst; metrics of other kinds are left out.

    Args:
        burst: Samples of these metrics.
        metrics: NVIDIA's names, one for each column of counts.
    """
    column = {name: burst.counts[:, index] for index, name in enumerate(metrics)}
    cycles = column.get(ELAPSED_CYCLES)
    meanings = {name: meaning_of(name) for name in metrics}
    bases = {
        Basis.NOTHING: 1.0 if cycles is not None else None,
        Basis.ELAPSED_CYCLES: cycles,
        Basis.TIME: (burst.end_ns - burst.start_ns).astype(np.float64),
    }
    amounts: dict[str, Floats] = {}
    in_cycles: list[bool] = []
    for name, meaning in meanings.items():
        if meaning is None or meaning.quantity in amounts:
            continue
        basis = bases[meaning.basis]
        timed = meaning.basis is Basis.TIME
        if basis is None and meaning.basis is Basis.ELAPSED_CYCLES:
            # Without cycles a percentage stands for time, as if the clock did not change.
            basis, timed = bases[Basis.TIME], True
        if basis is not None:
            amounts[meaning.quantity] = np.maximum(column[name] * meaning.scale * basis, 0.0)
            in_cycles.append(not timed)
    columns = list(amounts.values()) or [np.empty((len(burst.start_ns), 0))]
    flags = np.array(in_cycles, dtype=np.bool_)
    return Readings(tuple(amounts), np.column_stack(columns), flags, cycles)


def shares_of(burst: Burst, metrics: Sequence[str]) -> dict[str, Floats]:
    """Return what part of its peak each unit reached in each sample, 0 to 1, by quantity."""
    readings = readings_of(burst, metrics)
    length_ns = (burst.end_ns - burst.start_ns).astype(np.float64)
    cycles = length_ns if readings.cycles is None else np.maximum(readings.cycles, 1.0)
    flags = zip(readings.quantities, readings.in_cycles.tolist(), strict=True)
    return {
        name: np.minimum(readings.amounts[:, i] / (cycles if in_cycles else length_ns), 1.0)
        for i, (name, in_cycles) in enumerate(flags)
    }


def overlaps(burst: Burst, columns: Integers, width: int) -> Any:
    """Return the time of each sample in which kernels of each column ran.

    Kernels that run side by side each count with their whole time: bytes, instructions and cycles
    of a unit belong to one of them, so their amounts add up. The column after the last has the time
    in which none of them ran.

    Args:
        burst: Samples and kernels.
        columns: int64[k], the column of each kernel.
        width: Number of columns.

    Returns:
        scipy.sparse.csr_array[n, width + 1], ns.
    """
    from scipy.sparse import csr_array

    busy_start, busy_end = _merged(burst.kernel_start_ns, burst.kernel_end_ns)
    rows, _, busy_ns = _pieces(burst, busy_start, busy_end)
    idle = (burst.end_ns - burst.start_ns).astype(np.float64)
    np.subtract.at(idle, rows, busy_ns)
    sample, kernel, ns = _pieces(burst, burst.kernel_start_ns, burst.kernel_end_ns)
    gaps = np.flatnonzero(idle > 0)
    matrix = csr_array(
        (
            np.concatenate([ns, idle[gaps]]),
            (
                np.concatenate([sample, gaps]).astype(np.int32),
                np.concatenate([columns[kernel], np.full(len(gaps), width)]).astype(np.int32),
            ),
        ),
        shape=(len(idle), width + 1),
    )
    matrix.sum_duplicates()
    return matrix


def clusters(bursts: Sequence[Burst], cuts: int, most: int) -> Integers:
    """Return the number of the cluster that each sample of all bursts belongs to.

    Readings near each other are alike, so that only those of different clusters are independent.

    Args:
        bursts: All bursts of a device.
        cuts: Equal parts of a burst, each a cluster.
        most: Number of clusters; neighbours are put together where there would be more.
    """
    joined = max(1, -(-len(bursts) * cuts // most))
    counts = [len(burst.start_ns) for burst in bursts]
    parts = [number * cuts + np.arange(n) * cuts // n for number, n in enumerate(counts)]
    return np.concatenate(parts) // joined


def _pieces(burst: Burst, start: Integers, end: Integers) -> tuple[Integers, Integers, Floats]:
    """Return sample, range and length of each piece that a sample and a range share."""
    first = np.searchsorted(burst.end_ns, start, "right")
    last = np.maximum(np.searchsorted(burst.start_ns, end, "left"), first)
    counts = last - first
    ranges = np.repeat(np.arange(len(start)), counts)
    within = np.arange(len(ranges)) - np.repeat(np.cumsum(counts) - counts, counts)
    samples = within + first[ranges]
    ns = np.minimum(burst.end_ns[samples], end[ranges])
    ns = ns - np.maximum(burst.start_ns[samples], start[ranges])
    return samples, ranges, np.maximum(ns, 0).astype(np.float64)


def _merged(start: Integers, end: Integers) -> tuple[Integers, Integers]:
    """Return the ranges that these cover together; they begin in order."""
    if not len(start):
        return start, end
    reach = np.maximum.accumulate(end)
    begins = np.concatenate([[True], start[1:] > reach[:-1]])
    return start[begins], reach[np.concatenate([np.flatnonzero(begins)[1:] - 1, [len(end) - 1]])]


def _times(values: Any) -> Integers:
    return np.asarray(values).astype(np.int64).ravel()
