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

`standard_errors` says how well the rates are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.model.arrays import Floats, Integers, Mask
from proton_bench.recording.counters.bursts import (
    Burst,
    bursts_by_device,
    clusters,
    overlaps,
    readings_of,
)

# -- how well the rates are known ------------------------------------------------------------------
#
# The variance of a rate is the larger of two, and a third that is added:
#
# - curvature: s^2 x diag((F'F + p)^-1) with s^2 from the residuals. It is wide where the data
#   cannot tell two nodes apart: p says that a share has a standard error of 0.5 where nothing is
#   known, which nodes keep that always run in the same proportion (ridge regression as a prior:
#   Hoerl and Kennard 1970, Technometrics 12, 55);
# - clusters: (F'F + p)^-1 (sum over clusters of u u') (F'F + p)^-1 with u = F'e of a cluster,
#   which stays honest when residuals near each other are alike (Liang and Zeger 1986, Biometrika
#   73, 13; MacKinnon and White 1985). It is widened by Student's quantile for the number of
#   clusters that a node was seen in: (sum of w)^2 / sum of w^2 of its time in each. Clusters are
#   bursts; for a node that was seen in less than three they are parts of bursts, and its value is
#   that of these bursts;
# - edges: counters lag behind the records of a kernel, and clocks agree within 0.26 us. So a part
#   of the node's time, (``EDGE_NS`` + ``FOLLOWED_NS`` x c) / its length, has the rate of what
#   runs beside it; c is 1 where the same nodes always run before and after it, so that what is
#   late always counts for the same neighbour, and near 0 in a random mix. The difference of rates
#   is measured on the samples that the node shares.
#
# A rate is never more than the largest that its samples allow, which bounds the error where a unit
# was not used at all, whatever the neighbours are.
# The first is fitted: it holds the differences from Nsight Compute in recorded random mixes of an
# H200. The second is chosen by what was seen in a training step there, whose kernels repeat in the
# same order: within 4 points from 14 us on, 13 to 28 below 11 us.
EDGE_NS, FOLLOWED_NS = 650.0, 1200.0
_NORMAL = 1.959964  # of 95 %
# Fewer clusters say nothing of the differences between them.
_LEAST_BURSTS, _FEWEST_PARTS = 3.0, 1.5


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Rates and what they were computed from.

    Attributes:
        times: csr_array[n, k], ns of each column in each sample.
        amounts: float64[n, q], ns at the peak.
        lengths_ns: float64[n], lengths of the samples.
        rates: float64[k, q], shares of the peak.
        inverse: float64[k, k], the inverse of F'F + p.
        clusters: int64[n], the cluster of each sample: bursts, then parts of bursts.
        least: Least variance of a sample's amounts, ns^2.
    """

    times: Any
    amounts: Floats
    lengths_ns: Floats
    rates: Floats
    inverse: Floats
    clusters: tuple[Integers, Integers]
    least: float


def standard_errors(
    fit: Fit, columns: Integers, edges: Floats, *, most: float
) -> tuple[Floats, Floats]:
    """Return the errors of rates, and the part of them that is alike in all rows and runs.

    Args:
        fit: Rates of all columns.
        columns: Those whose errors are wanted.
        edges: The part of the time of each that may have the rate of what runs beside it.
        most: The error where nothing is known.

    Returns:
        Two arrays float64[columns, q] of standard errors: 1.96 of the first cover 95 %.
    """
    residuals = fit.amounts - fit.times @ fit.rates
    freedom = max(len(residuals) - fit.rates.shape[0], 1)
    spread = np.maximum((residuals**2).sum(axis=0) / freedom, fit.least)
    diagonal = np.diag(fit.inverse)[columns, None]
    (of_bursts, seen), (of_parts, _) = (
        _cluster_variance(fit, residuals, columns, cluster=cluster) for cluster in fit.clusters
    )
    by_cluster = np.where((seen >= _LEAST_BURSTS)[:, None], of_bursts, of_parts)
    variance = np.maximum(diagonal * spread, by_cluster)
    highest, contrast, own = _shared(fit, columns)
    rates = fit.rates[columns]
    bound = np.maximum(highest - rates, rates) / _NORMAL
    bound += np.sqrt(spread / np.maximum(own, 1.0)[:, None])
    limit = np.minimum(bound, most)
    at_edges = contrast * edges[:, None] / _NORMAL
    error = np.hypot(np.minimum(np.sqrt(variance), limit), at_edges)
    # An error that remains even without noise repeats in the next run.
    alike = np.hypot(np.minimum(np.sqrt(diagonal * fit.least), limit), at_edges)
    return np.minimum(error, most), np.minimum(alike, most)


def _cluster_variance(
    fit: Fit, residuals: Floats, columns: Integers, *, cluster: Integers
) -> tuple[Floats, Floats]:
    """Return the variances [column, quantity], and the number of clusters that a column was in."""
    from scipy.sparse import csr_array
    from scipy.special import stdtrit

    count = int(cluster.max()) + 1
    rows = np.arange(len(cluster))
    belongs = csr_array((np.ones(len(rows)), (cluster, rows)), shape=(count, len(rows)))
    weights = (belongs @ fit.times).toarray()[:, columns]
    seen = weights.sum(axis=0) ** 2 / np.maximum((weights**2).sum(axis=0), 1e-300)
    found = np.empty((len(columns), residuals.shape[1]))
    for quantity in range(residuals.shape[1]):
        scores = (belongs @ fit.times.multiply(residuals[:, quantity, None])).toarray()
        moved = fit.inverse[columns] @ (scores - scores.mean(axis=0)).T
        found[:, quantity] = (moved**2).sum(axis=1)
    widening = stdtrit(np.maximum(seen - 1.0, 0.5), 0.975) / _NORMAL
    found *= count / max(count - 1, 1) * (widening**2)[:, None]
    found[seen < _FEWEST_PARTS] = np.inf
    return found, seen


def _shared(fit: Fit, columns: Integers) -> tuple[Floats, Floats, Floats]:
    """Return the highest rate that samples allow, the contrast to neighbours, and sums of F^2."""
    back = fit.times.T.tocsr()[columns]
    rates, lengths = fit.rates[columns], fit.lengths_ns
    squares = back.multiply(back)
    own = np.asarray(squares.sum(axis=1)).ravel()
    highest = (back @ fit.amounts) / np.maximum(own, 1.0)[:, None]
    # sum of F (length - F)^2 and of F (amount - rate x length)^2, over the samples of the node.
    cubes = np.asarray(squares.multiply(back).sum(axis=1)).ravel()
    beside = back @ lengths**2 - 2 * (squares @ lengths) + cubes
    missing = (
        back @ fit.amounts**2
        - 2 * rates * (back @ (fit.amounts * lengths[:, None]))
        + rates**2 * (back @ lengths**2)[:, None]
    )
    contrast = np.sqrt(np.maximum(missing, 0.0) / np.maximum(beside, 1.0)[:, None])
    return highest, np.minimum(contrast, 1.0), own


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
    time_ns: Floats
    sampled_ns: Floats
    cycles_per_ns: Floats | None
    shares: Mapping[str, Floats]
    errors: Mapping[str, Floats]
    biases: Mapping[str, Floats]


@dataclass(frozen=True, slots=True, eq=False)
class _Pool:
    """All samples of a device, one below the other."""

    times: Any  # csr_array[n, columns + idle]
    amounts: Floats
    lengths_ns: Floats
    clusters: tuple[Integers, Integers]
    cycles: Floats | None


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


def _places(time_ns: Floats) -> Integers:
    """Return the column of each node: those of least time share the last one."""
    order = np.argsort(-time_ns, kind="stable")
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.minimum(np.arange(len(order)), _MOST_NODES)
    return places


def _repetition(bursts: Sequence[Burst], index: Integers) -> Floats:
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
    pool: _Pool, in_cycles: Mask, columns: Integers, *, edges: Floats
) -> tuple[Floats, Floats, Floats, Floats | None]:
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


def _rates(times: Any, amounts: Floats, rates: Floats) -> Floats:
    totals = np.asarray(times.sum(axis=0)).ravel()[:, None]
    totals = np.where(totals > 0, totals, 1.0)
    back = times.T.tocsr()
    for _ in range(_ROUNDS):
        before = rates
        rates = rates * (back @ (amounts / np.maximum(times @ rates, 1e-12))) / totals
        if float(np.abs(rates - before).max()) < _SETTLED:
            break
    return rates


def _clocks(pool: _Pool, square: Floats) -> tuple[Floats | None, float]:
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
