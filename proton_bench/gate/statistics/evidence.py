"""From values of processes to evidence: contrasts with their moderated noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from proton_bench.gate.machine.noise import Spread, pooled
from proton_bench.gate.statistics.contrast import Contrast, apart, paired
from proton_bench.gate.statistics.moderation import Moderated, moderate
from proton_bench.gate.statistics.prior import NO_PRIOR, Prior, fit_prior
from proton_bench.gate.statistics.shared_noise import effective_freedom, shared_part
from proton_bench.gate.statistics.timing import Evidence

__all__ = ["Background", "contrast_of", "weigh"]

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Background:
    """Prior knowledge.

    Attributes:
        floor: Least variance of each path, from the timer's tick.
        resolution: Least variance of each effect, for any number of runs.
        metrics: Metric of each path; paths are comparable only within a metric.
        stored: Stored spread of each path; 0 degrees of freedom for none.
        priors: Stored prior of each metric; for other metrics the runs at hand give it.
    """

    floor: Numbers
    resolution: Numbers
    metrics: Sequence[str]
    stored: Sequence[Spread]
    priors: Mapping[str, Prior] = field(default_factory=dict)


def contrast_of(base: Numbers, new: Numbers, order: Sequence[float]) -> Contrast:
    """Return the contrast of logarithms: of pairs if there is an order, else of sides apart."""
    if len(order):
        return paired(base, new, np.asarray(order, dtype=np.float64))
    return apart(base, new)


def weigh(contrast: Contrast, background: Background, *, fewest_runs: int) -> Evidence:
    """Return contrasts with the noise to judge them by.

    A path's timing is judged if both sides have enough processes, or if noise of it or of this
    machine is stored.

    Args:
        contrast: The runs at hand.
        background: Prior knowledge.
        fewest_runs: Processes that a side needs without stored noise.
    """
    variance, freedom = pooled(contrast, background.stored)
    variance = np.where(freedom > 0, np.maximum(variance, background.floor), np.nan)
    noise = _moderated(variance, freedom, background, contrast=contrast)
    lifted = np.maximum(noise.variance, background.floor)
    stored = np.array([each.freedom > 0 for each in background.stored], dtype=np.bool_)
    priors = [background.priors.get(each, NO_PRIOR).freedom for each in background.metrics]
    enough = (contrast.runs >= fewest_runs) | stored | (np.array(priors) > 0)
    known = np.isfinite(contrast.effect) & np.isfinite(lifted) & (noise.freedom > 0)
    return Evidence(
        contrast, Moderated(lifted, noise.freedom), enough & known, background.resolution
    )


def _moderated(
    variance: Numbers, freedom: Numbers, background: Background, *, contrast: Contrast
) -> Moderated:
    """Moderate the paths of each metric among themselves."""
    found = Moderated(np.full(len(variance), np.nan), np.zeros(len(variance)))
    for metric in dict.fromkeys(background.metrics):
        rows = np.array([each == metric for each in background.metrics], dtype=np.bool_)
        prior = background.priors.get(metric, NO_PRIOR)
        shared = shared_part(contrast.residuals[:, rows], contrast.freedom[rows])
        limit = effective_freedom(freedom[rows], shared)
        if prior.freedom > 0:  # it has its own data
            limit += prior.freedom
        else:
            prior = fit_prior(variance[rows], freedom[rows], shared=shared)
        part = moderate(variance[rows], freedom[rows], prior, limit=limit)
        found.variance[rows], found.freedom[rows] = part.variance, part.freedom
    return found
