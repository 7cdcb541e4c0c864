"""E-divisive: where the distribution of a series changes, for many series at once.

Matteson, James 2014, "A nonparametric approach for multiple change point analysis of multivariate
data", J. Am. Stat. Assoc. 109:334, with the distance ``|x - y|``. For a part of a series, ``X`` its
first ``n`` points and ``Y`` the ``m`` points after them,

    Q(X, Y) = 2 / (n + m) sum |X_i - Y_j|
            - 2 m / ((n + m) (n - 1)) sum_{i<k} |X_i - X_k|
            - 2 n / ((n + m) (m - 1)) sum_{j<k} |Y_j - Y_k|

is large if the points of ``X`` and of ``Y`` differ more than those within either. The greatest
``Q`` over all beginnings of ``Y`` and all its ends is the statistic of a part. Its p-value is the
share of random orders of the points that have at least as great a one. A part that is significant
is divided where ``Y`` begins, and both halves are tested in turn.

The points of a part are taken as normal scores of their values. So one point that is far away
counts as the greatest one, no more: on a machine where one run in ten is 10 % slower, distances of
values find half of the steps that distances of scores find.

All parts of a round are one family of tests with a bound on the false discovery rate. Parts with
equal scores, as all of one length have if no values are equal, share their random orders; their
p-values are positively dependent then, for which the bound holds (Bates et al. 2023, Ann. Stat.
51:149). The number of orders of each part is sequential (Besag, Clifford 1991, Biometrika 78:301):
they end with the `_ENOUGH`-th that is as great as the real order, and ``p = _ENOUGH / number``. If
fewer were as great so far, ``_ENOUGH / (number + 1)`` is an upper bound of that p-value, so a part
that it makes significant needs no more of them. So p-values as small as thousands of series need
are affordable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from proton_bench.model.arrays import Floats, Integers, Mask

Columns = npt.NDArray[np.floating[Any]]

# Of fewer points no order is rare: eight have 8! / 4! / 4! = 70, in either direction.
FEWEST_POINTS = 8
# Points on either side of a step: one or two slow runs in sequence are not a step.
FEWEST_BESIDE = 3
_ENOUGH = 5
# From what `fewest_after` concludes: random orders times squared points, points, and examples of a
# step. The tail of a distribution is its greatest twentieth.
_MOST_WORK, _MOST_POINTS, _EXAMPLES, _TAIL = 1 << 26, 200, 64, 0.05
# Columns that are computed together: their sums fit the cache of a core.
_COLUMNS = 512
# Error of a statistic for each point, where values are of size 1: rounding must not make an equally
# great one smaller.
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Division:
    """One place where a series is divided.

    Attributes:
        at: Index of the first point after it.
        p_value: Of its test, adjusted for all tests of its round.
    """

    at: int
    p_value: float


@dataclass(frozen=True, slots=True)
class _Part:
    """The points from ``start`` to before ``end`` of a series."""

    series: int
    start: int
    end: int


def divide(
    series: Sequence[Floats],
    *,
    level: float,
    seed: int = 0,
) -> list[list[Division]]:
    """Return where each series changes, in order.

    Args:
        series: Values of each series in order of time, without NaN; only their ranks matter.
            Series of fewer than `FEWEST_POINTS` are not tested.
        level: False discovery rate of each round of tests.
        seed: Of the random orders.
    """
    generator = np.random.default_rng(seed)
    found: list[list[Division]] = [[] for _ in series]
    parts = [_Part(place, 0, len(values)) for place, values in enumerate(series)]
    while parts:
        parts = [each for each in parts if each.end - each.start >= FEWEST_POINTS]
        values = [scores_of(series[each.series][each.start : each.end]) for each in parts]
        p_values = _adjusted(_tested(values, level=level, generator=generator))
        halves: list[_Part] = []
        for part, column, p_value in zip(parts, values, p_values.tolist(), strict=True):
            if p_value <= level:
                at = part.start + place_of_step(column)
                found[part.series].append(Division(at, p_value))
                halves += [_Part(part.series, part.start, at), _Part(part.series, at, part.end)]
        parts = halves
    return [sorted(each, key=lambda division: division.at) for each in found]


@cache
def fewest_after(points: int, series: int, level: float) -> int | None:
    """Return from how many points after it on a step usually shows, however large it is.

    The test of `divide` on steps that last to the end and divide the points in two; extremes beyond
    its random orders are taken to be exponential. None if the points are too few for any step.

    Args:
        points: Points of a series.
        series: Series of its family, if no other one has a step.
        level: False discovery rate.
    """
    if points < FEWEST_POINTS:
        return None
    generator = np.random.default_rng(0)
    points = min(points, _MOST_POINTS)
    scores = np.sort(scores_of(np.arange(points, dtype=np.float64)))
    orders = []
    for _ in range(math.ceil(min(8 * series / level, _MOST_WORK / points**2) / _COLUMNS)):
        repeated = np.repeat(scores[:, None], _COLUMNS, axis=1)
        orders.append(statistics_of(generator.permuted(repeated, axis=0)))
    limit = _extreme(np.concatenate(orders), level / series)
    for after in range(FEWEST_BESIDE, points // 2 + 1):
        parts = [np.repeat(part[:, None], _EXAMPLES, axis=1) for part in np.split(scores, [-after])]
        steps = np.concatenate([generator.permuted(part, axis=0) for part in parts])
        if np.median(statistics_of(steps)) >= limit:
            return after
    return None


def _extreme(values: Columns, p_value: float) -> float:
    """Return the value that this share of all reaches, which may be less than one of these."""
    if p_value * len(values) >= 1.0:
        return float(np.quantile(values, 1.0 - p_value, method="higher"))
    start = np.quantile(values, 1.0 - _TAIL)
    scale = (values[values >= start] - start).mean()
    return float(start + scale * math.log(_TAIL / p_value))


def statistics_of(columns: Columns) -> Columns:
    """Return for each column the greatest Q over all beginnings and ends of its second part.

    With ``W`` the sum of distances within points and ``end = n + m``,
    ``Q = 2 (end - 1) / end (W(both) / (end - 1) - W(X) / (n - 1) - W(Y) / (m - 1))``.

    Args:
        columns: One series in each column, shape (points, series), of at least
            ``2 FEWEST_BESIDE`` points.
    """
    length, count = columns.shape
    means = _within_first(columns)
    means[2:] /= np.arange(1, length, dtype=np.float32)[:, None]
    factors = (2.0 - 2.0 / np.arange(1, length + 2)).astype(np.float32)[:, None]
    best = np.full(count, -np.inf, dtype=np.float32)
    away, found, within, shorter = (np.empty_like(columns) for _ in range(4))
    shorter[:] = 0.0  # W of `size - 1` points from each point on
    from_first = np.zeros_like(columns)  # distances of each point from the next `size - 1`
    for size in range(2, length - FEWEST_BESIDE + 1):
        last = length - size + 1
        np.subtract(columns[:last], columns[size - 1 :], out=away[:last])
        np.abs(away[:last], out=away[:last])
        from_first[:last] += away[:last]
        np.add(shorter[1 : last + 1], from_first[:last], out=within[:last])
        if size >= FEWEST_BESIDE:
            inner = found[: last - FEWEST_BESIDE]
            np.multiply(within[FEWEST_BESIDE:last], np.float32(1.0 / (size - 1)), out=inner)
            inner += means[FEWEST_BESIDE:last]
            np.subtract(means[size + FEWEST_BESIDE : length + 1], inner, out=inner)
            inner *= factors[size + FEWEST_BESIDE - 1 : length]
            np.maximum(best, inner.max(axis=0), out=best)
        within, shorter = shorter, within
    return best


def place_of_step(values: Columns) -> int:
    """Return the index where the second part with the greatest Q begins.

    Args:
        values: One series of at least ``2 FEWEST_BESIDE`` points.
    """
    length = len(values)
    away = np.triu(np.abs(values[:, None] - values))
    within = np.cumsum(np.cumsum(away, axis=1)[::-1], axis=0)[::-1]  # from each to each, inclusive
    sizes = np.maximum(np.arange(length) - np.arange(length)[:, None], 1)
    means = within / sizes
    beginnings = np.arange(FEWEST_BESIDE, length - FEWEST_BESIDE + 1)
    found = means[0] - means[0, beginnings - 1][:, None] - means[beginnings]
    found *= 2.0 - 2.0 / np.arange(1, length + 1)
    reaches = np.arange(length) + 1 - beginnings[:, None] >= FEWEST_BESIDE
    return int(beginnings[np.where(reaches, found, -np.inf).max(axis=1).argmax()])


def _within_first(columns: Columns) -> Columns:
    """Return the sum of distances within the first points, for each number of them from 0."""
    sums = np.zeros((len(columns) + 1, columns.shape[1]), dtype=np.float32)
    for point in range(1, len(columns)):
        away = np.abs(columns[:point] - columns[point])
        np.add(sums[point], away.sum(axis=0), out=sums[point + 1])
    return sums


def scores_of(values: Floats) -> Columns:
    """Return the normal scores of values, divided by the greatest one; ties have one score.

    The score of the r-th of n values is the (r - 1/2) / n quantile of the normal distribution (van
    der Waerden 1952).
    """
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2.0
    found = special.ndtri((ranks - 0.5) / max(len(values), 1))
    largest = float(np.abs(found).max(initial=0.0))
    scaled = found / largest if largest > 0.0 else found
    scores: Columns = scaled[places.reshape(-1)].astype(np.float32)
    return scores


def _tested(
    parts: Sequence[Columns],
    *,
    level: float,
    generator: np.random.Generator,
) -> Floats:
    """Return the p-value of each part, or an upper bound that suffices."""
    p_values = np.ones(len(parts))
    left = [_Alike.of(parts, rows) for rows in _with_equal_scores(parts)]
    wanted = _COLUMNS
    while left:
        for group in left:
            group.draw(wanted, generator)
            p_values[group.rows] = group.p_values()
        is_open = _adjusted(p_values) > level
        left = [group for group in left if (is_open[group.rows] & group.is_counting()).any()]
        wanted *= 2
    return p_values


def _with_equal_scores(parts: Sequence[Columns]) -> list[list[int]]:
    """Return which parts have the same scores in some order; constant ones are left out."""
    found: dict[bytes, list[int]] = {}
    for row, part in enumerate(parts):
        if part.any():
            found.setdefault(np.sort(part).tobytes(), []).append(row)
    return list(found.values())


@dataclass(frozen=True, slots=True, eq=False)
class _Alike:
    """Parts with equal scores, and the random orders that they share.

    Attributes:
        rows: The parts.
        scores: Their scores in any order.
        limits: Statistics of their real orders, less what rounding may add to another one.
        number: Random orders of each part, up to the `_ENOUGH`-th that is as great.
        greater: Those that are as great.
    """

    rows: Integers
    scores: Columns
    limits: Columns
    number: Integers
    greater: Integers

    @classmethod
    def of(cls, parts: Sequence[Columns], rows: Sequence[int]) -> _Alike:
        """Return the group of these parts, without any random order."""
        columns = np.stack([parts[row] for row in rows], axis=1)
        blocks = range(0, len(rows), _COLUMNS)
        real = [statistics_of(columns[:, start : start + _COLUMNS]) for start in blocks]
        limits = np.concatenate(real) - _ROUNDING * len(columns)
        counts = (np.zeros(len(rows), dtype=np.int64) for _ in range(2))
        return cls(np.array(rows), columns[:, 0], limits, *counts)

    def is_counting(self) -> Mask:
        """Return for which parts more orders can change the p-value."""
        found: Mask = self.greater < _ENOUGH
        return found

    def p_values(self) -> Floats:
        """Return the p-values of the parts, or upper bounds where orders are still counted."""
        found: Floats = np.minimum(_ENOUGH / (self.number + self.is_counting()), 1.0)
        return found

    def draw(self, wanted: int, generator: np.random.Generator) -> None:
        """Draw random orders until each part has ``wanted``, or enough that are as great."""
        active = np.flatnonzero(self.is_counting())
        while len(active) and (count := min(wanted - int(self.number[active[0]]), _COLUMNS)) > 0:
            repeated = np.repeat(self.scores[:, None], count, axis=1)
            found = statistics_of(generator.permuted(repeated, axis=0))
            as_great = found >= self.limits[active, None]
            upto = self.greater[active, None] + np.cumsum(as_great, axis=1)
            has_enough = upto[:, -1] >= _ENOUGH
            self.number[active] += np.where(has_enough, (upto >= _ENOUGH).argmax(axis=1) + 1, count)
            self.greater[active] = np.minimum(upto[:, -1], _ENOUGH)
            active = active[~has_enough]


def _adjusted(p_values: Floats) -> Floats:
    """Return the least false discovery rate at which each test counts (Benjamini, Hochberg 1995).

    The i-th of M sorted p-values is multiplied by ``M / i`` and is at most the next one.
    """
    order = np.argsort(p_values, kind="stable")
    count = len(order)
    raw = p_values[order] * count / np.arange(1, count + 1)
    found = np.empty(count)
    found[order] = np.minimum(np.minimum.accumulate(raw[::-1])[::-1], 1.0)
    return found
