"""Location of the launches of one process: one number for each path and process.

The timer of a GPU ticks (32 ns on an H200), so that short kernels show few distinct values and an
ordinary median jumps by whole ticks. Two estimators interpolate between the ticks:

- The median of grouped data: a value represents the interval that was rounded to it, a tick or a
bucket of a sketch, with launches spread evenly in it. Without ties it is the ordinary median. It
stays in the interval of the middle launch, however far away other launches are.
- The mean without the lowest and the highest tenth, and at least one launch at either end, for
  kernels below 10 us. Start and end of a launch are anywhere between two ticks, so the mean of
  many launches is unbiased although each is a whole number of ticks.

A sketch knows only the interval of each launch. So every number has an error: how much it changes
if launches are at either end of their intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from proton_bench.model.arrays import Floats
from proton_bench.model.metrics.distribution import Distribution, Intervals


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Values of the launches of one path in one process.

    Attributes:
        known: Intervals of the values, in the metric's unit.
        mean: Mean of all launches, NaN without any; exact however wide the intervals are.
        values: The value that represents each interval.
        counts: Launches in each interval.
    """

    known: Intervals
    mean: float = math.nan
    values: Floats = field(init=False)
    counts: Floats = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", self.known.middles())
        object.__setattr__(self, "counts", self.known.counts.astype(np.float64))

    @property
    def size(self) -> float:
        """Number of launches."""
        return float(self.counts.sum())

    @classmethod
    def of_values(cls, values: Iterable[float]) -> Sample:
        """Return the sample of raw values; non-finite ones are left out."""
        raw = np.asarray(list(values), dtype=np.float64)
        raw = raw[np.isfinite(raw)]
        return cls(Intervals.of_values(raw), float(raw.mean()) if len(raw) else math.nan)

    @classmethod
    def of(cls, distribution: Distribution) -> Sample | None:
        """Return the sample of a recorded distribution, None if it has only moments."""
        known = distribution.intervals()
        if distribution.n == 0 or known is None:
            return None
        return cls(known, distribution.mean)


SHORT_NS = 10_000.0
TRIMMED = 0.1
_LARGEST_PART = 1e9


@dataclass(frozen=True, slots=True)
class Location:
    """One number for the launches of one path in one process.

    Attributes:
        value: In the metric's unit; NaN if there is none.
        log_variance: Contribution of the timer's tick to the variance of ``ln(value)``.
        error: Largest relative error of the value from missing single launches; infinite if the
            file does not say.
    """

    value: float
    log_variance: float = 0.0
    error: float = 0.0


def grouped_quantile(sample: Sample, q: float, tick: float = 0.0) -> float:
    """Return the q-quantile of values that represent intervals, NaN without values.

    Args:
        sample: The launches.
        q: Between 0 and 1.
        tick: Width of the interval that was rounded to a single value.
    """
    if not len(sample.values):
        return math.nan
    lows, highs = _edges(sample, tick)
    upto = np.cumsum(sample.counts)
    rank = q * upto[-1]
    place = min(int(np.searchsorted(upto, rank)), len(upto) - 1)
    if rank == upto[place] and place + 1 < len(upto):
        return float(highs[place] + lows[place + 1]) / 2.0
    part = 1.0 - (upto[place] - rank) / sample.counts[place]
    found = lows[place] + part * (highs[place] - lows[place])
    return float(np.clip(found, sample.known.lows[0], sample.known.highs[-1]))


def _edges(sample: Sample, tick: float) -> tuple[Floats, Floats]:
    """Return the interval of the launches of each value: at most half way to the next value."""
    values = sample.values
    half_ways = (values[1:] + values[:-1]) / 2.0
    lows = np.minimum(sample.known.lows, values - tick / 2.0)
    highs = np.maximum(sample.known.highs, values + tick / 2.0)
    lows[1:] = np.maximum(lows[1:], half_ways)
    highs[:-1] = np.minimum(highs[:-1], half_ways)
    return lows, highs


def trimmed_mean(sample: Sample, trimmed: float = TRIMMED) -> float:
    """Return the mean without this share of the launches at either end, NaN without launches.

    If there are at least three launches, at least one is cut off at either end, because a single
    slow one says nothing about the others. A partly cut value counts with the rest of its weight.
    """
    if not len(sample.values):
        return math.nan
    return float(np.average(sample.values, weights=_kept(sample, trimmed)))


def _kept(sample: Sample, trimmed: float) -> Floats:
    """Return how many launches of each value a trimmed mean uses."""
    total = sample.size
    if total >= 3:
        trimmed = max(trimmed, 1.0 / total)
    upto = np.cumsum(sample.counts)
    kept = np.minimum(upto, total * (1.0 - trimmed)) - np.maximum(
        upto - sample.counts, total * trimmed
    )
    found: Floats = np.maximum(kept, 0.0)
    return found


def locate(sample: Sample, name: str, *, tick: float, short: bool) -> Location:
    """Return a statistic of one process.

    Args:
        sample: Its launches.
        name: ``median``, ``mean``, ``min`` or ``pNN``.
        tick: Smallest step of the timer in the metric's unit, 0 for none.
        short: Whether the path is short, so that its median is the trimmed mean.
    """
    if not sample.size:
        return Location(math.nan)
    if name in _EXACT:
        value, error = _EXACT[name](sample), 0.0
    else:
        q = 0.5 if name == "median" else float(name[1:]) / 100.0
        if name == "median" and short:
            value, error = trimmed_mean(sample), _error_of_mean(sample)
        else:
            value, error = grouped_quantile(sample, q, tick), _error_of_rank(sample, q)
        error = error / abs(value) if value else math.inf if error else 0.0
    averaged = sample.size if name in {"median", "mean"} and len(sample.values) > 1 else 1.0
    step = max(tick, 0.0 if math.isinf(error) else error * abs(value))
    return Location(value, tick_variance(value, step, averaged), error)


# Statistics that are exact for every sample.
_EXACT: dict[str, Callable[[Sample], float]] = {
    "mean": lambda sample: sample.mean,
    "min": lambda sample: float(sample.known.lows[0]),
}


def _error_of_mean(sample: Sample) -> float:
    """Return the largest error of a trimmed mean from missing single launches."""
    known, weights = sample.known, _kept(sample, TRIMMED)
    if bool((weights[known.unknown] > 0.0).any()):
        return math.inf
    return float(np.average(known.highs - known.lows, weights=weights))


def _error_of_rank(sample: Sample, q: float) -> float:
    """Return the largest error of a quantile: it is in the interval of its rank."""
    place, known = _place(sample, q), sample.known
    return math.inf if known.unknown[place] else float(known.highs[place] - known.lows[place])


def _place(sample: Sample, q: float) -> int:
    """Return the index of the value with the launch of this rank."""
    upto = np.cumsum(sample.counts)
    return min(int(np.searchsorted(upto, q * upto[-1])), len(upto) - 1)


def tick_variance(value: float, tick: float, launches: float) -> float:
    """Return the variance that a tick gives to ``ln(value)``: ``(tick / value)^2 / (12 n)``.

    Rounding to a tick is an error that is uniform over the tick, of variance ``tick^2 / 12``, and
    the mean of ``n`` such errors has an n-th of it. If all launches have one value, their errors
    are equal and a mean does not reduce them: such a sample counts as one launch.
    """
    if not (math.isfinite(value) and value > 0.0) or launches <= 0.0:
        return 0.0
    # Beyond this the tick dominates any value, and the square does not fit a float.
    return float(min(tick / value, _LARGEST_PART) ** 2) / (12.0 * launches)
