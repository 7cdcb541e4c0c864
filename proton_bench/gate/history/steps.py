"""Steps of many series: where they begin, how large they are, and how surely both are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from proton_bench.gate.history.divisive import (
    FEWEST_BESIDE,
    FEWEST_POINTS,
    Division,
    divide,
    scores_of,
)
from proton_bench.model.arrays import Floats, Integers

# Smaller changes are certain in long series, but other constants in a kernel, or another day, may
# cause a quarter of a percent.
LEAST_CHANGE = 0.005
# Standard errors of a step where noise lasts. Steps are looked for where they look largest, so that
# fewer would let 5 of 10 false ones pass.
_ERRORS = 5.0
_MOST_LASTING = 0.95
# Series that say how long noise lasts; more would take time and say the same.
_MOST_TYPICAL = 200
# Standard deviations of normal values in the median of their absolute values.
_MAD = 1.4826
# Two-sided 90 %.
_NORMAL_95 = 1.6448536269514722
# Enough for the ends of 95 % of them.
_RESAMPLES = 400
_OUTSIDE = 2.5


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a series.

    Attributes:
        at: Index of the first point after it.
        earliest: With 95 % confidence, the first point after it is not before this index; of a
            drift this is the second point of the part before it,
        latest: nor after this one.
        change: Its size as the difference of natural logarithms.
        low: Lower end of the 90 % interval of the size.
        high: Upper end.
        p_value: Adjusted for all tests of its round.
    """

    at: int
    earliest: int
    latest: int
    change: float
    low: float
    high: float
    p_value: float


def find_steps(
    series: Sequence[Floats],
    *,
    level: float,
    seed: int = 0,
) -> list[tuple[Step, ...]]:
    """Return the steps of each series, in order.

    Args:
        series: Natural logarithms of the values in order of time, without NaN.
        level: False discovery rate over all series.
        seed: Of the random orders and samples.
    """
    divided = [
        _settled(values, divisions)
        for values, divisions in zip(series, divide(series, level=level, seed=seed), strict=True)
    ]
    typical = _typical(series, divided) if any(divided) else 0.0
    generator = np.random.default_rng(seed)
    return [
        _steps(values, _large(values, divisions, typical), generator) if divisions else ()
        for values, divisions in zip(series, divided, strict=True)
    ]


def shift_between(before: Floats, after: Floats) -> tuple[float, float, float]:
    """Return how much later values are greater, with the ends of a 90 % interval.

    The median of all differences (Hodges, Lehmann 1963, Ann. Math. Stat. 34:598) with the interval
    of the rank-sum test, whose width does not depend on single slow runs.
    """
    every = np.sort((after[:, None] - before).ravel())
    count = len(every)
    spread = math.sqrt(count * (len(before) + len(after) + 1) / 12.0)
    rank = max(math.floor(count / 2.0 - _NORMAL_95 * spread), 1)
    return float(np.median(every)), float(every[rank - 1]), float(every[count - rank])


def _settled(values: Floats, divisions: Sequence[Division]) -> list[Division]:
    """Place each division again between its neighbours, which were not known when it was found."""
    found = list(divisions)
    for place, each in enumerate(found):
        start, end = _around(found, place, len(values))
        here = values[start:end, None]
        found[place] = Division(start + int(_placed(here, each.at - start)[0]), each.p_value)
    return found


def _placed(columns: Floats, at: int) -> Integers:
    """Return for each column the index from which its points are nearer to its later level.

    Least absolute deviations from the medians on both sides (Bai 1995, Econometric Theory 11:403).
    """
    before, after = np.median(columns[:at], axis=0), np.median(columns[at:], axis=0)
    costs = np.cumsum(np.abs(columns - before) - np.abs(columns - after), axis=0)
    inner = costs[FEWEST_BESIDE - 1 : len(columns) - FEWEST_BESIDE]
    found: Integers = inner.argmin(axis=0) + FEWEST_BESIDE
    return found


def _large(values: Floats, divisions: list[Division], typical: float) -> list[Division]:
    """Leave out divisions that are too small, the smallest first.

    They have less than `LEAST_CHANGE`, or less than lasting noise makes of nothing.
    """
    left, spread = list(divisions), _lasting_spread(values, divisions, typical)
    while left:
        sizes = []
        for place in range(len(left)):
            before, after = _sides(values, left, place)
            error = spread * math.sqrt(1.0 / len(before) + 1.0 / len(after))
            least = max(math.log1p(LEAST_CHANGE), _ERRORS * error)
            sizes.append(abs(shift_between(before, after)[0]) / least)
        smallest = min(range(len(left)), key=sizes.__getitem__)
        if sizes[smallest] >= 1.0:
            break
        del left[smallest]
    return left


def _typical(series: Sequence[Floats], divided: Sequence[Sequence[Division]]) -> float:
    """Return the median of the correlations of consecutive points of all series.

    Most of them have no step that is noise. The correlation of n independent points has a variance
    of some 1 / n. What the series do not differ by of it they share, and it does not become less
    with their number.

    Returns:
        0 if the points may well be independent.
    """
    long = [place for place, values in enumerate(series) if len(values) >= FEWEST_POINTS]
    chosen = long[:: -(-len(long) // _MOST_TYPICAL)]
    found = [_correlation(_beside_lines(series[place], divided[place])) for place in chosen]
    own = float(np.var(found, ddof=1)) if len(found) > 1 else 0.0
    shared = max(float(np.mean([1.0 / len(series[place]) for place in chosen])) - own, 0.0)
    typical = float(np.median(found))
    return typical if typical > 2.0 * math.sqrt(shared + own / len(found)) else 0.0


def _lasting_spread(values: Floats, divisions: Sequence[Division], typical: float) -> float:
    """Return the spread of independent points whose means vary as much as those of the values.

    With ``r`` the correlation of consecutive points, the mean of n points has the variance
    ``spread^2 (1 + r) / (1 - r) / n`` (Bartlett 1946, J. R. Stat. Soc. Suppl. 8:27). It is that of
    these values or that of the typical series, whichever is greater: where noise was divided as if
    it were steps, little of its correlation is left.

    Returns:
        0 if the points may well be independent: then their random orders say enough.
    """
    parts = _beside_lines(values, divisions)
    own = _correlation(parts)
    found = max(typical, own if own > 2.0 / math.sqrt(len(values)) else 0.0)
    if found == 0.0:
        return 0.0
    jumps = np.diff(values)
    spread = max(
        _spread_of(np.concatenate(parts)),
        _spread_of(jumps - np.median(jumps)) / math.sqrt(2.0 * (1.0 - found)),
    )
    return spread * math.sqrt((1.0 + found) / (1.0 - found))


def _spread_of(values: Floats) -> float:
    return _MAD * float(np.median(np.abs(values)))


def _correlation(parts: Sequence[Floats]) -> float:
    """Return the correlation of consecutive points.

    It is that of the normal scores of what is left beside straight lines between the divisions,
    less its bias of ``-(1 + 3 r) / n`` (Kendall 1954, Biometrika 41:403) for each end of a line.
    """
    left = np.concatenate(parts)
    scores, count = scores_of(left).astype(np.float64), len(left)
    squares = float((scores**2).sum())
    if squares == 0.0:
        return 0.0
    found = float((scores[1:] * scores[:-1]).sum()) / squares
    return min(found + 2.0 * len(parts) * (1.0 + 3.0 * found) / count, _MOST_LASTING)


def _beside_lines(values: Floats, divisions: Sequence[Division]) -> list[Floats]:
    return [_beside_line(part) for part in np.split(values, [each.at for each in divisions])]


def _beside_line(values: Floats) -> Floats:
    """Return the residuals of a straight line, because a drift is not noise.

    Its slope is the median of those between all pairs of points (Theil, Sen 1968, J. Am. Stat.
    Assoc. 63:1379).
    """
    times = np.arange(len(values))
    first, last = np.triu_indices(len(values), 1)
    slope = float(np.median((values[last] - values[first]) / (last - first)))
    left: Floats = values - slope * times
    return left - np.median(left)


def _steps(
    values: Floats, divisions: Sequence[Division], generator: np.random.Generator
) -> tuple[Step, ...]:
    found = []
    for place, each in enumerate(divisions):
        before, after = _sides(values, divisions, place)
        earliest, latest = _range_of(before, after, generator)
        start = each.at - len(before)
        shift = shift_between(before, after)
        if _drifts(before, shift[0]):  # a part of it began at any of these points
            earliest = 1
        found.append(Step(each.at, start + earliest, start + latest, *shift, each.p_value))
    return tuple(found)


def _drifts(before: Floats, change: float) -> bool:
    """Return whether the points before a step move the same way already (Kendall 1938)."""
    count = len(before)
    first, last = np.triu_indices(count, 1)
    agreeing = float(np.sign((before[last] - before[first]) * change).sum())
    spread = math.sqrt(count * (count - 1) * (2 * count + 5) / 18.0)
    return agreeing > _NORMAL_95 * spread


def _range_of(before: Floats, after: Floats, generator: np.random.Generator) -> tuple[int, int]:
    """Return the 95 % range of the first index after a step, from the first point before it.

    Points are drawn anew on both sides of the step, and the step is looked for in them; it may be
    as far from the estimate as these are from the step (Huskova, Kirch 2008, J. Time Ser. Anal.
    29:947).
    """
    drawn = [
        np.median(side) + generator.choice(side - np.median(side), (len(side), _RESAMPLES))
        for side in (before, after)
    ]
    at, length = len(before), len(before) + len(after)
    errors = _placed(np.concatenate(drawn), at) - at
    low, high = np.percentile(errors, [_OUTSIDE, 100.0 - _OUTSIDE], method="closest_observation")
    last = length - FEWEST_BESIDE
    return max(at - int(high), FEWEST_BESIDE), min(at - int(low), last)


def _around(divisions: Sequence[Division], place: int, length: int) -> tuple[int, int]:
    """Return where the part before a division begins and the part after it ends."""
    start = divisions[place - 1].at if place else 0
    return start, divisions[place + 1].at if place + 1 < len(divisions) else length


def _sides(values: Floats, divisions: Sequence[Division], place: int) -> tuple[Floats, Floats]:
    start, end = _around(divisions, place, len(values))
    return values[start : divisions[place].at], values[divisions[place].at : end]
