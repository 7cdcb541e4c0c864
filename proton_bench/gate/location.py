"""Where the launches of one process lie: one number for each path and process.

The timer of a GPU ticks (32 ns on an H200), so that short kernels show few distinct values and an
ordinary median jumps by whole ticks. Two estimators go between the ticks:

- The mid-distribution median (Ma, Genton, Parzen 2011, "Asymptotic properties of sample quantiles
  of discrete distributions", Ann. Inst. Stat. Math. 63:227): with ``p_j`` the share of the value
  ``v_j`` and ``F_j`` that of all values up to it, the median is where the straight line through
  the points ``(F_j - p_j / 2, v_j)`` crosses 1/2. Without ties it is the ordinary median.
- The mean without the lowest and the highest tenth, for kernels below 10 us. Start and end of a
  launch fall anywhere between two ticks, so the mean of many launches is unbiased although each
  is a whole number of ticks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from proton_bench.gate.sample import Sample

__all__ = [
    "SHORT_NS",
    "TRIMMED",
    "Location",
    "locate",
    "mid_quantile",
    "spread_of",
    "trimmed_mean",
]

Numbers = npt.NDArray[np.float64]

SHORT_NS = 10_000.0
TRIMMED = 0.1
_LARGEST_PART = 1e9


@dataclass(frozen=True, slots=True)
class Location:
    """One number for the launches of one path in one process.

    Attributes:
        value: In the metric's unit; NaN where there is none.
        log_variance: What the timer's tick alone adds to the variance of ``ln(value)``.
    """

    value: float
    log_variance: float = 0.0


def mid_quantile(sample: Sample, q: float) -> float:
    """Return the q-quantile of the mid-distribution, NaN of nothing."""
    if not len(sample.values):
        return math.nan
    upto = np.cumsum(sample.counts)
    middles = (upto - sample.counts / 2.0) / upto[-1]
    return float(np.interp(q, middles, sample.values))


def trimmed_mean(sample: Sample, trimmed: float = TRIMMED) -> float:
    """Return the mean without this share of the launches at either end, NaN of nothing.

    A value of which only a part is cut off counts with the rest of its weight.
    """
    if not len(sample.values):
        return math.nan
    total = sample.size
    upto = np.cumsum(sample.counts)
    kept = np.minimum(upto, total * (1.0 - trimmed)) - np.maximum(
        upto - sample.counts, total * trimmed
    )
    weights = np.maximum(kept, 0.0)
    return float(np.average(sample.values, weights=weights))


def spread_of(sample: Sample, name: str) -> float:
    """Return ``stddev``, ``iqr`` or ``mad`` of the sample, NaN of less than two launches."""
    if sample.size < 2:
        return math.nan
    if name == "iqr":
        return mid_quantile(sample, 0.75) - mid_quantile(sample, 0.25)
    if name == "mad":
        away = np.abs(sample.values - mid_quantile(sample, 0.5))
        order = np.argsort(away, kind="stable")
        return mid_quantile(Sample(away[order], sample.counts[order]), 0.5)
    mean = np.average(sample.values, weights=sample.counts)
    squares = float((sample.counts * (sample.values - mean) ** 2).sum())
    return math.sqrt(squares / (sample.size - 1.0))


def locate(sample: Sample, name: str, *, tick: float, short: bool) -> Location:
    """Return a statistic of one process.

    Args:
        sample: Its launches.
        name: ``median``, ``mean``, ``min``, ``max``, ``stddev``, ``iqr``, ``mad`` or ``pNN``.
        tick: Smallest step of the timer in the metric's unit, 0 for none.
        short: Whether the path is short, so that its median is the trimmed mean.
    """
    if name == "median":
        value = trimmed_mean(sample) if short else mid_quantile(sample, 0.5)
    elif name == "mean":
        value = float(np.average(sample.values, weights=sample.counts)) if sample.size else math.nan
    elif name in {"min", "max"}:
        value = float(sample.values[0 if name == "min" else -1]) if sample.size else math.nan
    elif name in {"stddev", "iqr", "mad"}:
        value = spread_of(sample, name)
    else:
        value = mid_quantile(sample, float(name[1:]) / 100.0)
    averaged = sample.size if name in {"median", "mean"} and len(sample.values) > 1 else 1.0
    return Location(value, tick_variance(value, max(tick, sample.relative_tick * value), averaged))


def tick_variance(value: float, tick: float, launches: float) -> float:
    """Return the variance that a tick gives to ``ln(value)``: ``(tick / value)^2 / (12 n)``.

    Rounding to a tick is an error that is uniform over the tick, of variance ``tick^2 / 12``, and
    the mean of ``n`` such errors has an n-th of it. Where all launches show one value the errors
    are the same and no mean makes them smaller: such a sample counts as one launch.
    """
    if not (math.isfinite(value) and value > 0.0) or launches <= 0.0:
        return 0.0
    # Beyond this any value is lost in the tick, and the square is no float.
    return float(min(tick / value, _LARGEST_PART) ** 2) / (12.0 * launches)
