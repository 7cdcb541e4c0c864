"""The difference of two sides for every path: its size, its noise and its data.

Pairs. Both sides ran next to each other, ``o_r = +1`` if the base ran first and -1 if the new side
did. With ``D_r`` the new minus the base location of pair ``r`` on the log scale::

    D_r = effect + tau * o_r + error_r          Var error_r = variance
    effect = (mean of D where o = +1  +  mean of D where o = -1) / 2
    scale  = (1 / R+  +  1 / R-) / 4            Var effect = variance * scale
    variance = sum of (D_r - mean of its order)^2 / (R - 2)

``tau`` is the cost of running second: drift of clocks and temperature goes there instead of into
the effect (two-period crossover; Jones, Kenward 2014, "Design and Analysis of Cross-Over Trials").
With only one order it is part of the effect, which is then the mean of all pairs.

Apart. The base was recorded at another time: two independent groups with a common variance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Contrast", "apart", "paired"]

Numbers = npt.NDArray[np.float64]


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
    """

    effect: Numbers
    variance: Numbers
    freedom: Numbers
    scale: Numbers
    order_effect: Numbers
    runs: npt.NDArray[np.int64]
    residuals: Numbers

    def __len__(self) -> int:
        return len(self.effect)


def paired(base: Numbers, new: Numbers, order: Numbers) -> Contrast:
    """Return the contrast of pairs.

    Args:
        base: ``ln`` of the locations, one line per pair, one column per path; NaN for missing.
        new: The same of the new side.
        order: +1 for each pair in which the base ran first, -1 for the others.
    """
    differences = new - base
    known = np.isfinite(differences)
    groups = [known & (order == sign)[:, None] for sign in (1.0, -1.0)]
    counts = np.stack([group.sum(axis=0) for group in groups]).astype(np.float64)
    means = np.stack([_mean(differences, group) for group in groups])
    both = (counts > 0).all(axis=0)
    total = counts.sum(axis=0)
    everything = _mean(differences, known)
    middles = np.where(groups[0], means[0], means[1])
    middles = np.where(both, middles, everything)
    residuals = np.where(known, differences - middles, np.nan)
    freedom = np.maximum(total - np.where(both, 2.0, 1.0), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.where(both, (1.0 / counts).sum(axis=0) / 4.0, 1.0 / total)
        variance = np.where(freedom > 0, np.nansum(residuals**2, axis=0) / freedom, np.nan)
    return Contrast(
        effect=np.where(both, means.mean(axis=0), everything),
        variance=variance,
        freedom=freedom,
        scale=np.where(total > 0, scale, np.nan),
        order_effect=np.where(both, (means[0] - means[1]) / 2.0, np.nan),
        runs=total.astype(np.int64),
        residuals=residuals,
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
    return Contrast(
        effect=means[1] - means[0],
        variance=variance,
        freedom=freedom,
        scale=np.where(fewest > 0, scale, np.nan),
        order_effect=np.full(len(scale), np.nan),
        runs=fewest.astype(np.int64),
        residuals=residuals,
    )


def _mean(values: Numbers, chosen: npt.NDArray[np.bool_]) -> Numbers:
    counts = chosen.sum(axis=0)
    sums: Numbers = np.where(chosen, values, 0.0).sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
