"""From values of processes to evidence: contrasts with their moderated noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from proton_bench.gate.statistics.contrast import Contrast, apart, paired, rows_by_metric
from proton_bench.gate.statistics.moderation import Moderated, fit_prior, moderate
from proton_bench.gate.statistics.shared_factor import without_shared
from proton_bench.gate.statistics.shared_noise import LEAST, effective_freedom, shared_part
from proton_bench.gate.statistics.timing import Evidence

__all__ = ["Background", "contrast_of", "weigh"]

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Background:
    """Knowledge that the values of the runs do not have.

    Attributes:
        floor: Least variance of each path: from the timer's tick, or from stored noise.
        resolution: Least variance of each effect, for any number of runs.
        metrics: Metric of each path; paths are comparable only within a metric.
    """

    floor: Numbers
    resolution: Numbers
    metrics: Sequence[str]


def contrast_of(
    base: Numbers, new: Numbers, order: Sequence[float], *, metrics: Sequence[str] | None = None
) -> Contrast:
    """Return the contrast of logarithms: of pairs if there is an order, else of sides apart."""
    if len(order):
        return paired(base, new, np.asarray(order, dtype=np.float64), metrics=metrics)
    return apart(base, new)


def weigh(contrast: Contrast, background: Background, *, fewest_runs: int) -> Evidence:
    """Return contrasts with the noise to judge them by.

    Args:
        contrast: The runs at hand.
        background: What they do not say.
        fewest_runs: Processes that a side needs.
    """
    plain = _weighed(contrast, background, fewest_runs=fewest_runs)
    own = without_shared(contrast, background.metrics)
    if own is None:
        return plain
    return replace(plain, unshared=_weighed(own, background, fewest_runs=fewest_runs))


def _weighed(contrast: Contrast, background: Background, *, fewest_runs: int) -> Evidence:
    freedom = np.where(np.isfinite(contrast.variance), contrast.freedom, 0.0)
    variance = np.where(freedom > 0, np.maximum(contrast.variance, background.floor), np.nan)
    noise = _moderated(variance, freedom, background, contrast=contrast)
    known = np.isfinite(contrast.effect) & np.isfinite(noise.variance) & (noise.freedom > 0)
    tested = known & (contrast.runs >= fewest_runs)
    return Evidence(contrast, noise, tested, background.resolution)


def _moderated(
    variance: Numbers, freedom: Numbers, background: Background, *, contrast: Contrast
) -> Moderated:
    """Moderate the paths of each metric among themselves."""
    found = np.full((5, len(variance)), np.nan)
    for rows in rows_by_metric(background.metrics).values():
        shared = max(LEAST, shared_part(contrast.residuals[:, rows], contrast.freedom[rows]))
        limit = effective_freedom(freedom[rows], shared)
        prior = fit_prior(variance[rows], freedom[rows], shared=shared)
        part = moderate(variance[rows], freedom[rows], prior, limit=limit)
        found[:, rows] = (
            np.maximum(part.variance, background.floor[rows]),
            part.freedom,
            part.prior_variance,
            part.prior_freedom,
            part.most_freedom,
        )
    return Moderated(*found)
