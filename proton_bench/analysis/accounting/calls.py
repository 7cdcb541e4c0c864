"""Calls of rows, and values per call.

The count, mean and quantiles of a row are about its own calls. A row without any, such as a
scope, shows the launches below it instead. Sums over a subtree are never divided by counts of
another scope.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.metrics.formula import find_metric, unknown_metric
from proton_bench.analysis.metrics.values import MetricValues, quotient
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile

__all__ = ["CALLS", "call_values", "has_own_calls", "per_call"]

CALLS = "count"
_COUNTED = "calls of the row, else launches below it"
_AVERAGED = "of one call of the row or, if it has none, of one launch below it"

Mask = npt.NDArray[np.bool_]


def has_own_calls(profile: Profile) -> Mask:
    """Return for each row whether it has calls of its own, False without recorded counts."""
    full = find_metric(CALLS, profile.columns)
    if full is None or not profile.columns[full].kind.is_number:
        return np.zeros(len(profile), dtype=np.bool_)
    column = profile.columns[full]
    found: Mask = column.known & (column.values != 0)
    return found


def call_values(profile: Profile) -> MetricValues:
    """Return the calls of each row.

    Raises:
        MetricError: No counts were recorded.
    """
    values, valid = _of_calls(profile, CALLS)
    return MetricValues(CALLS, Aggregation.EXCLUSIVE, values, valid, _COUNTED)


def per_call(profile: Profile, metric: str, name: str, *, scale: float) -> MetricValues:
    """Return a metric divided by the calls that it was recorded for.

    Args:
        profile: The rows.
        metric: A recorded metric.
        name: Name of the result.
        scale: Further divisor.

    Raises:
        MetricError: The metric or counts were not recorded.
    """
    values, known = _of_calls(profile, metric)
    calls, counted = _of_calls(profile, CALLS)
    means, valid = quotient(values / scale, calls, known & counted)
    return MetricValues(name, Aggregation.EXCLUSIVE, means, valid, _AVERAGED)


def _of_calls(profile: Profile, metric: str) -> tuple[npt.NDArray[np.float64], Mask]:
    """Return a row's own value if it has calls, else the sum below it, and whether there is any."""
    full = find_metric(metric, profile.columns)
    if full is None or not profile.columns[full].kind.is_number:
        raise unknown_metric(metric, profile.columns)
    column, own = profile.columns[full], has_own_calls(profile)
    known = column.known
    values = np.where(own, np.where(known, column.values, 0), profile.inclusive(full))
    return values, np.where(own, known, profile.covered(full))
