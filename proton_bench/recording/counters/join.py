"""What each call path did of the counts of samples in which several kernels ran.

The counts of a sample are a mixture: the sum over nodes of (rate of the node x time of the sample
in which its kernels ran). Rates are pooled over all bursts of a device and found by

    r <- r / sum(F) x F' (y / (F r))        (F: times of nodes in samples, y: amounts of samples)

This is maximum likelihood for counts (Shepp and Vardi 1982, IEEE Transactions on Medical Imaging 1,
113; Richardson 1972; Lucy 1974). Rates stay positive, and all amounts are given to some node: least
squares gives whole samples more weight than those at the edges of a kernel, and so 6 % too much to
a product of 25 us. It begins at the solution of least squares, because its own steps are short
where neighbours repeat in the same order. Time without a kernel of ours has a rate as well, so that
other processes and writes that come late do not count for kernels.

`uncertainty` says how well the rates are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.recording.counters.bursts import (
    Burst,
    bursts_by_device,
    clusters,
    overlaps,
    readings_of,
)
from proton_bench.recording.counters.uncertainty import (
    EDGE_NS,
    FOLLOWED_NS,
    Fit,
    standard_errors,
)

# Columns of a fit, whose time grows with the cube of it; the nodes of least time share one more.
_MOST_NODES = 2000
_MOST_CLUSTERS = 256
_LEAST_CUTS, _LEAST_PARTS = 4, 40  # of a burst, and of all
_ROUNDS = 30
_SETTLED = 1e-4  # a round that changes no rate by more is the last
_LEAST_RATE = 1e-3  # from which a rate can still grow
# Prior of a rate as a share of the peak: its standard deviation.
_PRIOR = 0.5
_IDLE_PRIOR = 0.01
# Least spread of a sample's amounts around what the rates say, as a part of its time.
_LEAST_SPREAD = 0.002
_NEAR_NS = 20_000  # kernels further apart are not neighbours
_CLOCK_PRIOR = 0.1  # clocks differ from the mean of the run by this part of it
_CLOCK_LIMITS = (0.25, 2.0)

Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class DeviceEstimates:
    """Estimates of the nodes whose kernels ran in samples of one device.

    Attributes:
        device: Number of the device in the profile's table.
        nodes: uint32[k], their nodes, in order.
        time_ns: float64[k], time of the kernels that overlap bursts.
        sampled_ns: float64[k], the part of it inside samples.
        cycles_per_ns: float64[k], the clock of the multiprocessors meanwhile; None if not sampled.
        shares: Of each quantity float64[k], the part of the unit's peak, 0 to 1.
        errors: Of each quantity float64[k], its standard error: 95 % intervals are 1.96 of it.
        biases: The part of it that does not get smaller in a mean over rows or runs.
    """

    device: int
    nodes: npt.NDArray[np.uint32]
    time_ns: Values
    sampled_ns: Values
    cycles_per_ns: Values | None
    shares: Mapping[str, Values]
    errors: Mapping[str, Values]
    biases: Mapping[str, Values]


@dataclass(frozen=True, slots=True, eq=False)
class _Pool:
    """All samples of a device, one below the other."""

    times: Any  # csr_array[n, columns + idle]
    amounts: Values
    lengths_ns: Values
    clusters: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
    cycles: Values | None


def join_bursts(
    bursts: Iterable[Mapping[str, Any]], metrics: Sequence[str]
) -> list[DeviceEstimates]:
    """Return the estimates of each device that has samples of kernels.

    Args:
        bursts: What ``take_bursts`` of a native session returns.
        metrics: NVIDIA's names of what was sampled (``counter_metrics``).
    """
    found = [
        _join(device, of_device, metrics)
        for device, of_device in sorted(bursts_by_device(bursts).items())
    ]
    return [each for each in found if each is not None]


def _join(device: int, bursts: Sequence[Burst], metrics: Sequence[str]) -> DeviceEstimates | None:
    readings = [readings_of(burst, metrics) for burst in bursts]
    quantities, in_cycles = readings[0].quantities, readings[0].in_cycles
    every = np.concatenate([burst.nodes for burst in bursts])
    if not (quantities and (every >= 0).any()):
        return None
    nodes, index = np.unique(every, return_inverse=True)
    lengths = np.concatenate([burst.kernel_end_ns - burst.kernel_start_ns for burst in bursts])
    time_ns = np.bincount(index, lengths).astype(np.float64)
    launches = np.bincount(index)
    places = _places(time_ns)
    width = int(places.max()) + 1
    ends = np.cumsum([len(burst.nodes) for burst in bursts])[:-1]
    from scipy.sparse import vstack

    parts = zip(bursts, np.split(places[index], ends), strict=True)
    has_cycles = readings[0].cycles is not None
    pool = _Pool(
        vstack([overlaps(burst, columns, width) for burst, columns in parts], format="csr"),
        np.concatenate([each.amounts for each in readings]),
        np.concatenate([burst.end_ns - burst.start_ns for burst in bursts]).astype(np.float64),
        (
            clusters(bursts, 1, _MOST_CLUSTERS),
            clusters(bursts, max(_LEAST_CUTS, -(-_LEAST_PARTS // len(bursts))), 4 * _MOST_CLUSTERS),
        ),
        np.concatenate([each.cycles for each in readings if each.cycles is not None])
        if has_cycles
        else None,
    )
    own = np.flatnonzero((nodes >= 0) & (places < min(width, _MOST_NODES)))
    columns = places[own]
    sampled_ns = np.asarray(pool.times.sum(axis=0)).ravel()[columns]
    edge_ns = EDGE_NS + FOLLOWED_NS * _repetition(bursts, index)[own]
    edges = np.minimum(edge_ns * launches[own] / time_ns[own], 1.0)
    shares, errors, biases, clocks = _estimates(pool, in_cycles, columns, edges=edges)
    seen = sampled_ns > 0
    return DeviceEstimates(
        device,
        nodes[own][seen].astype(np.uint32),
        time_ns[own][seen],
        sampled_ns[seen],
        None if clocks is None else clocks[seen],
        {name: shares[seen, i] for i, name in enumerate(quantities)},
        {name: errors[seen, i] for i, name in enumerate(quantities)},
        {name: biases[seen, i] for i, name in enumerate(quantities)},
    )


def _places(time_ns: Values) -> npt.NDArray[np.int64]:
    """Return the column of each node: those of least time share the last one."""
    order = np.argsort(-time_ns, kind="stable")
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.minimum(np.arange(len(order)), _MOST_NODES)
    return places


def _repetition(bursts: Sequence[Burst], index: npt.NDArray[np.int64]) -> Values:
    """Return of each node how much the same other nodes run before and after it, 0 to 1.

    Args:
        bursts: Kernels in the order of time.
        index: The node of each.
    """
    start = np.concatenate([burst.kernel_start_ns for burst in bursts])
    end = np.concatenate([burst.kernel_end_ns for burst in bursts])
    near = start[1:] - end[:-1] < _NEAR_NS
    near[np.cumsum([len(burst.nodes) for burst in bursts])[:-1] - 1] = False
    before, after = index[:-1][near], index[1:][near]
    launches = np.bincount(index)
    found = np.zeros(len(launches))
    for node, other in ((before, after), (after, before)):
        pairs, counts = np.unique(node * len(launches) + other, return_counts=True)
        own, its = np.divmod(pairs, len(launches))
        parts = np.where(own == its, 0.0, counts / launches[own])
        found += np.bincount(own, parts**2, minlength=len(launches)) / 2
    return found


def _estimates(
    pool: _Pool, in_cycles: npt.NDArray[np.bool_], columns: npt.NDArray[np.int64], *, edges: Values
) -> tuple[Values, Values, Values, Values | None]:
    """Return shares, errors and biases [node, quantity], and each node's clock in cycles per ns."""
    times = pool.times
    square = (times.T @ times).toarray()
    clocks, mean_clock = _clocks(pool, square)
    # Amounts that are cycles become times at the mean clock, so that all are shares of a sample.
    amounts = np.where(in_cycles, pool.amounts / mean_clock, pool.amounts)
    least = (_LEAST_SPREAD * float(np.median(pool.lengths_ns))) ** 2
    square[np.diag_indices_from(square)] += least / _PRIOR**2
    # The prior of the idle column: no other work runs unless the samples show it.
    square[-1, -1] += least / _IDLE_PRIOR**2
    inverse = np.linalg.inv(square)
    rates = _rates(times, amounts, np.clip(inverse @ (times.T @ amounts), _LEAST_RATE, 1.0))
    fit = Fit(times, amounts, pool.lengths_ns, rates, inverse, pool.clusters, least)
    errors, biases = standard_errors(fit, columns, edges, most=_PRIOR)
    shares = rates[columns]
    if clocks is None:
        return np.minimum(shares, 1.0), errors, biases, None
    clocks = clocks[columns]
    scale = np.where(in_cycles, (mean_clock / clocks)[:, None], 1.0)
    return np.minimum(shares * scale, 1.0), errors * scale, biases * scale, clocks


def _rates(times: Any, amounts: Values, rates: Values) -> Values:
    totals = np.asarray(times.sum(axis=0)).ravel()[:, None]
    totals = np.where(totals > 0, totals, 1.0)
    back = times.T.tocsr()
    for _ in range(_ROUNDS):
        before = rates
        rates = rates * (back @ (amounts / np.maximum(times @ rates, 1e-12))) / totals
        if float(np.abs(rates - before).max()) < _SETTLED:
            break
    return rates


def _clocks(pool: _Pool, square: Values) -> tuple[Values | None, float]:
    """Return the clock of each column, and the mean one; they are 1 where cycles are not known.

    A clock dips within microseconds when tensor cores work, so the cycles of a sample are a mixture
    like all else. A mean over samples would be that of the neighbours as well.
    """
    if pool.cycles is None or not float(pool.cycles.sum()) > 0:
        return None, 1.0
    mean = float(pool.cycles.sum() / pool.lengths_ns.sum())
    rest = pool.cycles - mean * pool.lengths_ns
    ridge = float(np.mean(rest**2)) / (_CLOCK_PRIOR * mean) ** 2
    ridge = max(ridge, 1e-9 * float(np.trace(square)) / len(square), 1e-9)
    found = np.linalg.solve(square + ridge * np.eye(len(square)), pool.times.T @ rest)
    lowest, highest = _CLOCK_LIMITS
    return np.clip(mean + found, lowest * mean, highest * mean), mean
