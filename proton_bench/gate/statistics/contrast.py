"""The difference of two sides for every path: its size, its noise and its data.

Pairs. Both sides ran next to each other, ``o_r = +1`` if the base ran first and -1 if the new side
did. With ``D_r`` the new minus the base location of pair ``r`` on the log scale::

    D_r = effect + tau * o_r + error_r          Var error_r = variance
    tau = median over the paths of (mean of D where o = +1  -  mean of D where o = -1) / 2
    effect = mean of (D_r - tau o_r)            scale = 1 / R + (mean of o)^2 (1/R+ + 1/R-) / (4 M)
    variance = sum of (D_r - tau o_r - effect)^2 / (R - 1 - 1 / M)

``tau`` is the cost of running second: drift of clocks and temperature goes there instead of into
the effect (two-period crossover; Jones, Kenward 2014, "Design and Analysis of Cross-Over Trials").
It is one number for all ``M`` paths of a metric, because the machine causes it. An own ``tau`` of
each path would explain slow processes that share an order by chance, and hide this noise. With only
one order it is part of the effect.

Apart. The base was recorded at another time: two independent groups with a common variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Contrast", "apart", "paired", "rows_by_metric"]

Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Contrast:
    """One line of numbers for each path.

    Attributes:
        effect: New minus base on the log scale; NaN without a value on each side.
        variance: Of one pair, or of one process if the sides are apart; NaN without degrees of
            freedom.
        freedom: Degrees of freedom of the variance.
        scale: ``Var effect = variance * scale``.
        order_effect: Cost of running second; NaN if unknown.
        runs: Processes of the smaller side, or pairs.
        residuals: Residuals of the variance: one line for each pair, or process; NaN for missing.
        first_new: Number of lines of the base, 0 for pairs.
        separation: +1 if the new side was slower in every pair, whichever side ran first, or in
            every process if the sides are apart; -1 if it was always faster; else 0.
    """

    effect: Numbers
    variance: Numbers
    freedom: Numbers
    scale: Numbers
    order_effect: Numbers
    runs: npt.NDArray[np.int64]
    residuals: Numbers
    first_new: int
    separation: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.effect)


def paired(
    base: Numbers, new: Numbers, order: Numbers, *, metrics: Sequence[str] | None = None
) -> Contrast:
    """Return the contrast of pairs.

    Args:
        base: ``ln`` of the locations, one line per pair, one column per path; NaN for missing.
        new: The same of the new side.
        order: +1 for each pair in which the base ran first, -1 for the others.
        metrics: Metric of each path; the order effect is common to the paths of one metric. None
            for one metric.
    """
    differences = new - base
    known = np.isfinite(differences)
    signs = np.where(known, order[:, None], 0.0)
    sides = [np.where(known & (order == sign)[:, None], 1.0, 0.0) for sign in (1.0, -1.0)]
    counts = np.stack([side.sum(axis=0) for side in sides])
    tau, paths = _order_effects(differences, sides, metrics)
    total = known.sum(axis=0).astype(np.float64)
    corrected = np.where(known, differences - np.nan_to_num(tau) * signs, np.nan)
    effect = _mean(corrected, known)
    residuals = corrected - effect
    freedom = np.maximum(total - 1.0 - np.where(np.isfinite(tau), 1.0 / np.maximum(paths, 1), 0), 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        of_tau = (1.0 / np.maximum(counts, 1.0)).sum(axis=0) / (4.0 * np.maximum(paths, 1.0))
        of_tau = np.where(np.isfinite(tau), of_tau * (signs.sum(axis=0) / total) ** 2, 0.0)
        scale = 1.0 / total + of_tau
        variance = np.where(freedom > 0, np.nansum(residuals**2, axis=0) / freedom, np.nan)
    slower, faster = (
        (np.where(known, sign * differences, np.inf) > 0.0).all(axis=0) for sign in (1.0, -1.0)
    )
    return Contrast(
        effect=effect,
        variance=variance,
        freedom=freedom,
        scale=np.where(total > 0, scale, np.nan),
        order_effect=tau,
        runs=total.astype(np.int64),
        residuals=residuals,
        first_new=0,
        separation=np.where(total > 0, slower.astype(np.int64) - faster, 0),
    )


def apart(base: Numbers, new: Numbers) -> Contrast:
    """Return the contrast of two groups that were not recorded in turn; arguments as `paired`."""
    sides = (base, new)
    known = [np.isfinite(side) for side in sides]
    counts = np.stack([each.sum(axis=0) for each in known]).astype(np.float64)
    means = [_mean(side, each) for side, each in zip(sides, known, strict=True)]
    residuals = np.concatenate(
        [
            np.where(each, side - mean, np.nan)
            for side, each, mean in zip(sides, known, means, strict=True)
        ]
    )
    freedom = np.maximum(counts.sum(axis=0) - 2.0, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.where(freedom > 0, np.nansum(residuals**2, axis=0) / freedom, np.nan)
        scale = (1.0 / counts).sum(axis=0)
    fewest = counts.min(axis=0)
    lowest, highest = (
        [found(np.where(each, side, fill), axis=0) for side, each in zip(sides, known, strict=True)]
        for found, fill in ((np.min, np.inf), (np.max, -np.inf))
    )
    apart_by = (highest[0] < lowest[1]).astype(np.int64) - (highest[1] < lowest[0])
    return Contrast(
        effect=means[1] - means[0],
        variance=variance,
        freedom=freedom,
        scale=np.where(fewest > 0, scale, np.nan),
        order_effect=np.full(len(scale), np.nan),
        runs=fewest.astype(np.int64),
        residuals=residuals,
        first_new=len(base),
        separation=np.where(fewest > 0, apart_by, 0),
    )


def rows_by_metric(metrics: Sequence[str]) -> dict[str, npt.NDArray[np.intp]]:
    """Return the indexes of the paths of each metric."""
    found: dict[str, list[int]] = {}
    for at, metric in enumerate(metrics):
        found.setdefault(metric, []).append(at)
    return {metric: np.array(rows, dtype=np.intp) for metric, rows in found.items()}


def _order_effects(
    differences: Numbers, sides: Sequence[Numbers], metrics: Sequence[str] | None
) -> tuple[Numbers, Numbers]:
    """Return the order effect of each path's metric, NaN if unknown, and the paths it is from."""
    means = [_mean(differences, side > 0.0) for side in sides]
    own = (means[0] - means[1]) / 2.0
    groups = [np.arange(len(own))] if metrics is None else rows_by_metric(metrics).values()
    tau, paths = np.full(len(own), np.nan), np.zeros(len(own))
    for rows in groups:
        chosen = rows[np.isfinite(own[rows])]
        if len(chosen):
            tau[rows], paths[rows] = np.median(own[chosen]), len(chosen)
    return tau, paths


def _mean(values: Numbers, chosen: Mask) -> Numbers:
    counts = chosen.sum(axis=0)
    sums: Numbers = np.where(chosen, values, 0.0).sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
