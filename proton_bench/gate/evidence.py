"""From values of processes to evidence: contrasts with their moderated noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from proton_bench.gate.contrast import Contrast, apart, paired
from proton_bench.gate.moderation import Moderated, moderate
from proton_bench.gate.noise import Spread, pooled
from proton_bench.gate.prior import NO_PRIOR, Prior, fit_prior
from proton_bench.gate.timing import Evidence

__all__ = ["Background", "contrast_of", "weigh"]

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Background:
    """What is known besides the runs at hand.

    Attributes:
        floor: Least variance of each path, from the timer's tick.
        resolution: Least variance of each effect, however many runs there are.
        stored: Stored spread of each path; of no freedom for none.
        prior: Stored prior, `NO_PRIOR` to take it from the runs at hand.
    """

    floor: Numbers
    resolution: Numbers
    stored: Sequence[Spread]
    prior: Prior = NO_PRIOR


def contrast_of(base: Numbers, new: Numbers, order: Sequence[float]) -> Contrast:
    """Return the contrast of logarithms: of pairs where there is an order, else of sides apart."""
    if len(order):
        return paired(base, new, np.asarray(order, dtype=np.float64))
    return apart(base, new)


def weigh(contrast: Contrast, background: Background, *, fewest_runs: int) -> Evidence:
    """Return contrasts with the noise by which to judge them.

    A path is judged by its timing where both sides have enough processes, or something is stored of
    it or of this machine.

    Args:
        contrast: The runs at hand.
        background: What is known besides.
        fewest_runs: Processes that a side needs where nothing is stored.
    """
    variance, freedom = pooled(contrast, background.stored)
    variance = np.where(freedom > 0, np.maximum(variance, background.floor), np.nan)
    prior = background.prior if background.prior.freedom > 0 else fit_prior(variance, freedom)
    limit = float(freedom.sum())
    if background.prior.freedom > 0:  # it rests on data of its own
        limit += background.prior.freedom
    noise = moderate(variance, freedom, prior, limit=limit)
    lifted = np.maximum(noise.variance, background.floor)
    stored = np.array([each.freedom > 0 for each in background.stored], dtype=np.bool_)
    enough = (contrast.runs >= fewest_runs) | stored | (background.prior.freedom > 0)
    known = np.isfinite(contrast.effect) & np.isfinite(lifted) & (noise.freedom > 0)
    return Evidence(
        contrast, Moderated(lifted, noise.freedom), enough & known, background.resolution
    )
