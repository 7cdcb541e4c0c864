"""Changes of paths without the noise that they share: each path against all others.

On a busy machine most of the noise of a path is common to many: other work slows a whole run, some
paths more than others. The residuals ``E`` of R pairs and M paths, of ``d`` degrees of freedom,
show this factor. For path p it comes from the other paths alone, each divided by its norm, so that
a noisy path cannot explain itself::

    f_p = first left singular vector of the scaled residuals of the other paths
    D_pr = effect_p + load_p (f_pr + shift) + error_pr        load_p = E_p . f_p
    variance_p = |E_p - load_p f_p|^2 / (d - 1)               scale_p = (scale + shift^2) (1 + 1/M)

This is an analysis of covariance (Cox, McCullagh 1982, Biometrics 38:541) with an estimated
covariate. Residuals do not show ``shift``, the mean of the factor. It is the median of the ratios
of plain effects and loads, weighted by the share of each path's noise that is common: right if
fewer than half of the paths changed (Wang, Zhao, Hastie, Owen 2017, "Confounder adjustment in
multiple hypothesis testing", Ann. Stat. 45:1863). A change of most paths would look like noise.
Therefore nothing is removed if a t test at 5 % finds that the mean of the factor is not 0, and
`timing.decide` judges the plain effects too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from proton_bench.gate.statistics.common_shift import FEWEST_PATHS
from proton_bench.gate.statistics.contrast import Contrast, rows_by_metric
from proton_bench.gate.statistics.power import quantile
from proton_bench.gate.statistics.timing import CONFIDENCE

__all__ = ["without_shared"]

Numbers = npt.NDArray[np.float64]

# Most sums change with a single path below them.
_SUMS = frozenset({"total", "wall"})
# The variance that is left to the typical path, at most: two tests have half of the level each.
_MOST_LEFT = 0.5


def without_shared(contrast: Contrast, metrics: Sequence[str]) -> Contrast | None:
    """Return the contrast of pairs without the noise that the paths of a metric share.

    Args:
        contrast: The plain contrast.
        metrics: Metric of each path.

    Returns:
        The effect is NaN for paths whose noise is as it was: sums, paths that lack a pair, and
        those of metrics with few paths, little shared noise or too large a shift. None if no metric
        has much shared noise, as if the sides are apart.
    """
    effect, found = np.full(len(contrast), np.nan), False
    scale, residuals = contrast.scale.copy(), contrast.residuals.copy()
    usable = (contrast.variance > 0.0) & (contrast.freedom > 1.0)
    usable &= np.isfinite(residuals).all(axis=0) & (contrast.first_new == 0)
    for metric, every in rows_by_metric(metrics).items():
        rows = every[usable[every]]
        if metric in _SUMS or len(rows) < FEWEST_PATHS:
            continue
        plain = residuals[:, rows]
        factors = _factors(plain)
        loads = (plain * factors).sum(axis=0)
        remaining = plain - loads * factors
        # The data of the shift must not choose between one test and two.
        if np.median((remaining**2).sum(axis=0) / (plain**2).sum(axis=0)) > _MOST_LEFT:
            continue
        found = True
        shift = _shift(contrast.effect[rows], loads, plain)
        if _is_noise(shift, runs=len(plain)):
            effect[rows] = contrast.effect[rows] - shift * loads
            scale[rows] = (scale[rows] + shift**2) * (1.0 + 1.0 / len(rows))
            residuals[:, rows] = remaining
    return _with(contrast, effect, scale=scale, residuals=residuals) if found else None


def _with(contrast: Contrast, effect: Numbers, *, scale: Numbers, residuals: Numbers) -> Contrast:
    """Return the contrast with other effects, of one degree of freedom less."""
    freedom = np.maximum(contrast.freedom - 1.0, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.nansum(residuals**2, axis=0) / freedom
    slower, faster = ((sign * (residuals + effect) > 0.0).all(axis=0) for sign in (1.0, -1.0))
    return replace(
        contrast,
        effect=effect,
        variance=np.where(np.isfinite(effect), variance, np.nan),
        freedom=freedom,
        scale=scale,
        residuals=residuals,
        separation=np.where(slower, 1, np.where(faster, -1, 0)),
    )


def _factors(residuals: Numbers) -> Numbers:
    """Return the factor of all other paths for each path, of norm 1 and with one sign."""
    scaled = residuals / np.sqrt((residuals**2).sum(axis=0))
    products = scaled @ scaled.T
    others = products - scaled.T[:, :, None] * scaled.T[:, None, :]
    common, factors = (np.linalg.eigh(each)[1][..., -1] for each in (products, others))
    found: Numbers = (factors * np.where(factors @ common < 0.0, -1.0, 1.0)[:, None]).T
    return found


def _shift(effect: Numbers, loads: Numbers, residuals: Numbers) -> float:
    """Return the mean of the factor: the weighted median of the ratios of effects and loads."""
    known = np.flatnonzero(loads)
    ratios = effect[known] / loads[known]
    weights = np.abs(loads[known]) / np.sqrt((residuals[:, known] ** 2).sum(axis=0))
    order = np.argsort(ratios)
    upto = np.cumsum(weights[order])
    return float(ratios[order][np.searchsorted(upto, upto[-1] / 2.0)])


def _is_noise(shift: float, *, runs: int) -> bool:
    """Return whether noise of norm 1 may well have this mean, by the t test of one sample."""
    freedom = runs - 1.0
    largest = quantile(0.5 + CONFIDENCE / 2.0, np.array(freedom))
    return abs(shift) * math.sqrt(runs * freedom) <= float(largest)
