"""One metric of every row: recorded ones, means, and what an entry of the registry is.

A mean stays correct when rows are summed as two columns, of value x weight and of the weight.
`with_mean` puts them into a profile, folding and pruning sum them like any metric, and
`mean_values` divides at the end, for every row and scope.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from proton_bench.analysis.metrics.formula import SECONDS, SELF, find_metric, unknown_metric
from proton_bench.errors import MetricError
from proton_bench.model.arrays import Array, Floats, Mask
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, MetricSpec, ValueKind
from proton_bench.model.metrics.wall_times import is_span, spans_of
from proton_bench.model.profile import Profile

WIDEST = 6.0  # points of half an interval
# Of every metric with intervals; amounts are withheld with the share that they come from.
INTERVAL_NOTE = (
    f"+- is half of the 95 % interval, - where the share has more than {WIDEST:g} points"
)


@dataclass(frozen=True, slots=True, eq=False)
class MetricValues:
    """One metric of every row.

    Attributes:
        name: The requested name, or the default.
        aggregation: How values of children relate to those of their parent.
        values: int64 or float64; objects for texts and vectors.
        valid: Whether the row has a value; else its entry in ``values`` is undefined.
        meaning: Meaning of a value, "" if the aggregation implies it.
        halves: Half of the 95 % interval of each value, in its unit; None if there is none.
    """

    name: str
    aggregation: Aggregation
    values: Array
    valid: Mask
    meaning: str = ""
    halves: Floats | None = None

    @property
    def title(self) -> str:
        """The name, with ``(inc)`` if values include the rows below."""
        return f"{self.name} (inc)" if self.aggregation is Aggregation.INCLUSIVE else self.name

    @property
    def is_number(self) -> bool:
        """Whether values can be compared and added."""
        return self.values.dtype != np.dtype(object)

    def take(self, rows: Array) -> MetricValues:
        """Return the values of these rows (positions or mask)."""
        halves = None if self.halves is None else self.halves[rows]
        return replace(self, values=self.values[rows], valid=self.valid[rows], halves=halves)

    def to_list(self) -> list[Any]:
        """Return plain Python values, None for missing ones."""
        pairs = zip(self.values.tolist(), self.valid.tolist(), strict=True)
        return [value if valid else None for value, valid in pairs]


@dataclass(frozen=True, slots=True)
class DerivedMetric:
    """Metrics that one computation makes: one entry of the registry.

    Attributes:
        names: Matches their names, in lower case.
        offered: Returns those that a profile has, from it and its recorded numbers.
        values: Returns one of them; it raises MetricError where the profile lacks its source.
        prepare: Adds to a profile what it needs of single variants, before they are folded.
        needs_samples: Whether it is about the samples of single launches.
    """

    names: re.Pattern[str]
    offered: Callable[[Profile, Sequence[str]], Iterable[str]]
    values: Callable[[Profile, str], MetricValues]
    prepare: Callable[[Profile], Profile] | None = None
    needs_samples: bool = False


def quotient(values: Array, by: Array, known: Mask) -> tuple[Floats, Mask]:
    """Return values / by and a mask of valid results; division by zero is not valid."""
    known = known & (by != 0)
    result = np.full(len(values), np.nan)
    np.divide(values, by, out=result, where=known)
    return result, known


_SUM = "weighted sum of "
_WEIGHT = "weight of "
_MEANING = "mean over the kernels of the row and all rows below it, weighted by time"


def with_mean(profile: Profile, name: str, *, values: Array, weights: Array) -> Profile:
    """Return the profile with a mean; rows of weight 0 have no value.

    Args:
        profile: The profile of the rows.
        name: Name of the metric, with its unit in parentheses if it has one.
        values: Value of each row.
        weights: Weight of each row's value, such as its time.
    """
    known = (weights > 0) & np.isfinite(values)
    weight = np.where(known, weights, 0.0).astype("<f8")
    total = np.where(known, values, 0.0) * weight
    parts = {
        f"{_SUM}{name}": total.astype("<f8"),
        f"{_WEIGHT}{name}": weight,
    }
    columns = {
        part: MetricColumn(MetricSpec(part, Aggregation.INCLUSIVE), ValueKind.FLOAT, column, known)
        for part, column in parts.items()
    }
    return replace(profile, columns={**profile.columns, **columns})


def is_part_of_mean(column: str) -> bool:
    """Return whether a column is one of the two parts of a mean, which are not shown."""
    return column.startswith((_SUM, _WEIGHT))


def mean_names(profile: Profile) -> tuple[str, ...]:
    """Return the names of the means that a profile has."""
    return tuple(
        name.removeprefix(_SUM)
        for name in profile.columns
        if name.startswith(_SUM) and f"{_WEIGHT}{name.removeprefix(_SUM)}" in profile.columns
    )


def mean_values(profile: Profile, name: str, shown: str) -> MetricValues:
    """Return a mean of every row, over the row and all rows below it.

    Args:
        profile: A profile with that mean.
        name: Name of the mean.
        shown: Name of the result.
    """
    weight = profile.inclusive(f"{_WEIGHT}{name}")
    values, valid = quotient(profile.inclusive(f"{_SUM}{name}"), weight, weight > 0)
    return MetricValues(shown, Aggregation.PROPERTY, values, valid, _MEANING)


def recorded_names(profile: Profile) -> tuple[str, ...]:
    """Return the full names of the columns that are metrics of their own."""
    return tuple(name for name in profile.columns if not is_part_of_mean(name))


def is_inclusive(column: MetricColumn) -> bool:
    """Return whether values of a column add up over the rows below."""
    return column.spec.aggregation is Aggregation.INCLUSIVE and column.kind is not ValueKind.STR


def recorded_values(profile: Profile, name: str) -> MetricValues:
    """Return the values of a column by its full name."""
    column = profile.columns[name]
    if is_span(column):
        spans = spans_of(profile, column)
        return MetricValues(name, Aggregation.INCLUSIVE, spans.whole, spans.has_whole)
    if column.kind.is_number and is_inclusive(column):
        values = profile.inclusive(name)
        return MetricValues(name, Aggregation.INCLUSIVE, values, profile.covered(name))
    aggregation = column.spec.aggregation
    if is_inclusive(column):
        aggregation = Aggregation.EXCLUSIVE
    if column.kind.is_number:
        return MetricValues(name, aggregation, column.values, column.valid)
    objects = np.empty(len(column), dtype=object)
    objects[:] = column.to_list()
    return MetricValues(name, aggregation, objects, column.valid)


def source_values(profile: Profile, name: str) -> MetricValues:
    """Return the numbers that something is derived from: ``time``, ``self_time``.

    Raises:
        MetricError: They were not recorded, or are not numbers.
    """
    recorded = recorded_names(profile)
    full, of_self = find_metric(name, recorded), find_metric(name.removeprefix(SELF), recorded)
    if full is None and of_self is not None and name.startswith(SELF):
        return _self_values(profile, of_self)
    if full is None:
        raise unknown_metric(name, recorded)
    values = recorded_values(profile, full)
    if not values.is_number:
        raise MetricError(f"metric {full!r} is not a number, so nothing can be derived from it")
    return values


def _self_values(profile: Profile, metric: str) -> MetricValues:
    column = profile.columns[metric]
    if is_span(column):
        spans = spans_of(profile, column)
        values, valid = spans.own, spans.has_own
    elif column.kind.is_number and is_inclusive(column):
        values, valid = column.values, column.valid
    else:
        raise MetricError(f"metric {metric!r} does not add up over rows, so it has no self values")
    meaning = "without the rows below"
    return MetricValues(f"{SELF}{metric}", Aggregation.EXCLUSIVE, values, valid, meaning)


def has_self_values(profile: Profile, metric: str) -> bool:
    """Return whether a row has a value of its own beside those of the rows below it."""
    column = profile.columns[metric]
    if not (is_span(column) or is_inclusive(column)):
        return False
    own, whole = _self_values(profile, metric), source_values(profile, metric)
    return bool((own.valid & (own.values > 0) & (whole.values > own.values)).any())


def time_seconds(profile: Profile) -> MetricValues:
    """Return the time that rates are relative to, in seconds: of kernels, else of scopes."""
    spans = [name for name, column in profile.columns.items() if is_span(column)]
    is_timed = find_metric("time", profile.columns) is not None
    time = source_values(profile, "time" if is_timed or not spans else spans[0])
    second = SECONDS.get(MetricSpec(time.name).unit, SECONDS["ns"])
    return MetricValues(time.name, time.aggregation, time.values * second, time.valid)


def own_numbers(profile: Profile, name: str) -> Floats:
    """Return the number of each row alone, 0 where it has none."""
    full = find_metric(name, profile.columns)
    if full is None or not profile.columns[full].kind.is_number:
        return np.zeros(len(profile))
    column = profile.columns[full]
    return np.where(column.known, column.values, 0).astype(np.float64)


def own_ns(profile: Profile, name: str) -> Floats:
    """Return the time of each row alone in ns, 0 where it has none or the metric is not a time."""
    full = find_metric(name, profile.columns)
    unit = SECONDS.get(MetricSpec(full).unit, 0.0) if full is not None else 0.0
    return own_numbers(profile, name) * (unit / SECONDS["ns"])
