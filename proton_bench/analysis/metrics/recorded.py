"""Values of recorded metrics for every row, with or without those of the rows below."""

from __future__ import annotations

import numpy as np

from proton_bench.analysis.metrics.formula import SECONDS, SELF, find_metric, unknown_metric
from proton_bench.analysis.metrics.values import MetricValues
from proton_bench.analysis.metrics.weighted import is_part_of_mean
from proton_bench.errors import MetricError
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, MetricSpec, ValueKind
from proton_bench.model.metrics.spans import is_span, spans_of
from proton_bench.model.profile import Profile

__all__ = [
    "has_self_values",
    "is_inclusive",
    "recorded_names",
    "recorded_values",
    "source_values",
    "time_seconds",
]


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
        MetricError: They were not recorded, or are no numbers.
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
