"""The detectable change of a gate, and the number of pairs that it needs.

With ``se = sqrt(variance * scale)``, ``t`` the quantiles of its t distribution, ``m`` the margin
and ``q'`` the level that a single path must reach (``q max(1, discoveries) / M``), all on the log
scale::

    detectable = m + (t[1 - q'] + t[power]) * se
    pairs      = ((t[1 - q'] + t[power]) * sqrt(variance) / (threshold - m))^2

(the usual normal-theory sample size, e.g. Chow, Shao, Wang 2008, "Sample Size Calculations in
Clinical Research", section 3.2, with the t distribution that this number of pairs would have).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

__all__ = [
    "MOST_PAIRS",
    "POWER",
    "RECOMMENDED_PAIRS",
    "Question",
    "detectable",
    "pairs_needed",
    "quantile",
]

Numbers = npt.NDArray[np.float64]

POWER = 0.8
MOST_PAIRS = 200
# With these, 97 of 100 changes of 5 % are found on a simulated machine:
# benchmarks/studies/README.md.
RECOMMENDED_PAIRS = 6


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """Tested changes of all paths, on the log scale.

    Attributes:
        margin: Changes up to this do not matter.
        threshold: The change to detect.
        level: The level that the path's own test must reach.
    """

    margin: Numbers
    threshold: Numbers
    level: Numbers


def quantile(probability: Numbers | float, freedom: Numbers) -> Numbers:
    """Return quantiles of Student's t; NaN without degrees of freedom, normal if infinite."""
    with np.errstate(invalid="ignore", divide="ignore"):
        finite = special.stdtrit(np.where(np.isfinite(freedom), freedom, 1.0), probability)
    found: Numbers = np.where(np.isinf(freedom), special.ndtri(probability), finite)
    return np.where(freedom > 0, found, np.nan)


def detectable(question: Question, error: Numbers, freedom: Numbers) -> Numbers:
    """Return the smallest change, on the log scale, that is detected with `POWER`.

    Args:
        question: What is tested.
        error: Standard error of the effect.
        freedom: Its degrees of freedom.
    """
    reach = quantile(1.0 - question.level, freedom) + quantile(POWER, freedom)
    found: Numbers = question.margin + reach * error
    return found


def pairs_needed(question: Question, variance: Numbers, freedom_of_prior: Numbers) -> Numbers:
    """Return how many pairs, equally many in both orders, detect the threshold with `POWER`.

    Args:
        question: What is tested.
        variance: Variance of one pair.
        freedom_of_prior: Degrees of freedom beyond those of the pairs themselves.

    Returns:
        Even numbers of at least 4; NaN if more than `MOST_PAIRS` would be needed or the variance is
        unknown.
    """
    distance = question.threshold - question.margin
    deviation = np.sqrt(variance)
    # In steps of two pairs; a bisection finds the fewest, because the need falls with more pairs.
    low = np.full(len(variance), 1.0)
    high = np.full(len(variance), MOST_PAIRS / 2.0 + 1.0)
    for _ in range(math.ceil(math.log2(MOST_PAIRS))):
        middle = np.floor((low + high) / 2.0)
        freedom = freedom_of_prior + 2.0 * middle - 2.0
        reach = quantile(1.0 - question.level, freedom) + quantile(POWER, freedom)
        enough = reach * deviation / np.sqrt(2.0 * middle) <= distance
        high = np.where(enough, middle, high)
        low = np.where(enough, low, middle)
    found = 2.0 * np.maximum(high, 2.0)
    return np.where((high <= MOST_PAIRS / 2.0) & np.isfinite(variance), found, np.nan)
