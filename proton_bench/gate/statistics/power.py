"""The threshold that a gate can hold, and the number of pairs that it needs.

With ``se = sqrt(variance * scale)``, ``t`` the quantiles of its t distribution, ``m`` the margin,
which is half of the threshold, and ``q'`` the level that a single path must reach, all on the log
scale::

    threshold that is held = 2 (t[1 - q'] + t[power]) se
    pairs                  = ((t[1 - q'] + t[power]) * sqrt(variance) / distance)^2

(the usual normal-theory sample size, e.g. Chow, Shao, Wang 2008, "Sample Size Calculations in
Clinical Research", section 3.2, with the t distribution that this number of pairs would have). The
distance from the margin is that of the threshold, or of the change so far if it is larger.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import special

__all__ = ["MOST_PAIRS", "POWER", "RECOMMENDED_PAIRS", "detectable", "pairs_needed", "quantile"]

Numbers = npt.NDArray[np.float64]

POWER = 0.9
MOST_PAIRS = 200
# The fewest that can make a path fail, see `states`.
RECOMMENDED_PAIRS = 6


def quantile(probability: Numbers | float, freedom: Numbers) -> Numbers:
    """Return quantiles of Student's t; NaN without degrees of freedom, normal if infinite."""
    with np.errstate(invalid="ignore", divide="ignore"):
        finite = special.stdtrit(np.where(np.isfinite(freedom), freedom, 1.0), probability)
    found: Numbers = np.where(np.isinf(freedom), special.ndtri(probability), finite)
    return np.where(freedom > 0, found, np.nan)


def detectable(level: float, error: Numbers, freedom: Numbers) -> Numbers:
    """Return the smallest threshold, on the log scale, that is detected with `POWER`.

    Args:
        level: The level that the path's own test must reach.
        error: Standard error of the effect.
        freedom: Its degrees of freedom.
    """
    return 2.0 * _reach(level, freedom) * error


def pairs_needed(
    level: float, distance: Numbers, variance: Numbers, *, freedom: Numbers, runs: Numbers
) -> Numbers:
    """Return how many pairs, equally many in both orders, detect a change with `POWER`.

    Args:
        level: The level that the path's own test must reach.
        distance: From the margin to the change, on the log scale.
        variance: Variance of one pair.
        freedom: Its degrees of freedom, which grow as the pairs do.
        runs: Pairs so far.

    Returns:
        Even numbers of at least 4; NaN if more than `MOST_PAIRS` would be needed or the variance is
        unknown.
    """
    deviation = np.sqrt(variance)
    of_one = freedom / np.maximum(runs - 1.0, 1.0)
    # In steps of two pairs; a bisection finds the fewest, because the need falls with more pairs.
    low = np.full(len(variance), 1.0)
    high = np.full(len(variance), MOST_PAIRS / 2.0 + 1.0)
    for _ in range(math.ceil(math.log2(MOST_PAIRS))):
        middle = np.floor((low + high) / 2.0)
        reach = _reach(level, of_one * (2.0 * middle - 1.0))
        enough = reach * deviation / np.sqrt(2.0 * middle) <= distance
        high = np.where(enough, middle, high)
        low = np.where(enough, low, middle)
    found = 2.0 * np.maximum(high, 2.0)
    return np.where((high <= MOST_PAIRS / 2.0) & np.isfinite(variance), found, np.nan)


def _reach(level: float, freedom: Numbers) -> Numbers:
    return quantile(1.0 - level, freedom) + quantile(POWER, freedom)
