"""How well the rates of a join are known.

The variance of a rate is the larger of two, and a third that is added:

- curvature: s^2 x diag((F'F + p)^-1) with s^2 from the residuals. It is wide where the data cannot
  tell two nodes apart: p says that a share has a standard error of 0.5 where nothing is known,
  which nodes keep that always run in the same proportion (ridge regression as a prior: Hoerl and
  Kennard 1970, Technometrics 12, 55);
- clusters: (F'F + p)^-1 (sum over clusters of u u') (F'F + p)^-1 with u = F'e of a cluster, which
  stays honest when residuals near each other are alike (Liang and Zeger 1986, Biometrika 73, 13;
  MacKinnon and White 1985). It is widened by Student's quantile for the number of clusters that a
  node was seen in: (sum of w)^2 / sum of w^2 of its time in each. Clusters are bursts; for a node
  that was seen in less than three they are parts of bursts, and its value is that of these bursts;
- edges: counters lag behind the records of a kernel, and clocks agree within 0.26 us. So a part of
  the node's time, (``EDGE_NS`` + ``FOLLOWED_NS`` x c) / its length, has the rate of what runs
  beside it; c is 1 where the same nodes always run before and after it, so that what is late always
  counts for the same neighbour, and near 0 in a random mix. The difference of rates is measured on
  the samples that the node shares.

A rate is never more than the largest that its samples allow, which bounds the error where a unit
was not used at all, whatever the neighbours are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

# The first is fitted: it holds the differences from Nsight Compute in recorded random mixes of an
# H200. The second is chosen by what was seen in a training step there, whose kernels repeat in the
# same order: within 4 points from 14 us on, 13 to 28 below 11 us.
EDGE_NS, FOLLOWED_NS = 650.0, 1200.0
_NORMAL = 1.959964  # of 95 %
# Fewer clusters say nothing of the differences between them.
_LEAST_BURSTS, _LEAST_PARTS = 3.0, 1.5

Values = npt.NDArray[np.float64]


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
    amounts: Values
    lengths_ns: Values
    rates: Values
    inverse: Values
    clusters: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
    least: float


def standard_errors(
    fit: Fit, columns: npt.NDArray[np.int64], edges: Values, *, most: float
) -> tuple[Values, Values]:
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
    fit: Fit, residuals: Values, columns: npt.NDArray[np.int64], *, cluster: npt.NDArray[np.int64]
) -> tuple[Values, Values]:
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
    found[seen < _LEAST_PARTS] = np.inf
    return found, seen


def _shared(fit: Fit, columns: npt.NDArray[np.int64]) -> tuple[Values, Values, Values]:
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
