"""Calls of rows, and values per call.

A kernel or operator counts its calls, a scope or layer how often it was entered, if that is known.
Means and quantiles are about a row's own calls, or else about the launches below it. Sums over a
subtree are never divided by counts of another scope.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from proton_bench.analysis.metrics.formula import find_metric, unknown_metric
from proton_bench.analysis.metrics.values import MetricValues, quotient
from proton_bench.model import preorder
from proton_bench.model.arrays import Array, Floats, Mask
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, MetricSpec, ValueKind
from proton_bench.model.metrics.wall_times import WALL
from proton_bench.model.profile import Profile
from proton_bench.model.steps import divided, steps_in

LAUNCHES = "launches"


def launch_values(profile: Profile) -> MetricValues:
    """Return the launches of kernels in each row and below it.

    In files without kinds of rows, all work on a device is a kernel.

    Raises:
        MetricError: No counts were recorded.
    """
    own = kernel_counts(profile)
    values = preorder.sums(profile.parents, own).astype(own.dtype)
    return MetricValues(LAUNCHES, Aggregation.INCLUSIVE, values, values > 0)


def kernel_counts(profile: Profile) -> Array:
    """Return the launches of each row's own kernel, 0 for other rows; the mean step has fractions.

    Raises:
        MetricError: No counts were recorded.
    """
    full = find_metric("count", profile.columns)
    if full is None or not profile.columns[full].kind.is_number:
        raise unknown_metric("count", profile.columns)
    column = profile.columns[full]
    unnamed = (profile.kinds == FrameKind.UNKNOWN) & (profile.device_rows >= 0)
    is_kernel = ((profile.kinds == FrameKind.KERNEL) | unnamed) & column.valid
    counts = np.where(is_kernel & np.isfinite(column.values), column.values, 0)
    return counts.astype(np.int64) if bool((counts == np.rint(counts)).all()) else counts


CALLS = "count"
_COUNTED = "calls of the row, of ROOT all launches"
ENTERED = "range_count"
# Rows of other kinds may be kernels of formats that name no kinds.
_OF_HOST = (
    FrameKind.SCOPE,
    FrameKind.OP,
    FrameKind.STATE,
    FrameKind.PYTHON,
    FrameKind.TEST,
    FrameKind.LAYER,
)
_AVERAGED = "of one call of the row or, if it has none, of one launch below it"


def has_own_calls(profile: Profile) -> Mask:
    """Return for each row whether it has calls of its own, False without recorded counts."""
    full = find_metric(CALLS, profile.columns)
    if full is None or not profile.columns[full].kind.is_number:
        return np.zeros(len(profile), dtype=np.bool_)
    column = profile.columns[full]
    found: Mask = column.known & (column.values != 0)
    return found


def call_values(profile: Profile) -> MetricValues:
    """Return the calls of each row: of kernels their launches, of scopes how often they ran.

    Raises:
        MetricError: No counts were recorded.
    """
    entered = profile.columns.get(ENTERED)
    if entered is None or not entered.kind.is_number:
        values, valid = _of_calls(profile, CALLS)
    elif find_metric(CALLS, profile.columns) is None:
        values, valid = entered.values, entered.known
    else:
        own = has_own_calls(profile)
        counts, counted = _of_calls(profile, CALLS)
        values = np.where(own | ~entered.known, counts, entered.values)
        valid = counted | entered.known
    is_host = np.isin(profile.kinds, _OF_HOST) & ~has_own_calls(profile)
    if entered is not None:
        is_host &= ~entered.known
    return MetricValues(CALLS, Aggregation.EXCLUSIVE, values, valid & ~is_host, _COUNTED)


def with_entered(profile: Profile) -> Profile:
    """Return the profile with the number of times that timed scopes were entered."""
    table = profile.distributions.get(WALL)
    if table is None or ENTERED in profile.columns or WALL not in profile.columns:
        return profile
    values = np.zeros(len(profile), dtype=np.int64)
    values[table.rows] = table.n
    spec = MetricSpec(ENTERED, Aggregation.EXCLUSIVE)
    column = divided(MetricColumn(spec, ValueKind.INT, values, values > 0), steps_in(profile))
    return replace(profile, columns={**profile.columns, ENTERED: column})


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


def _of_calls(profile: Profile, metric: str) -> tuple[Floats, Mask]:
    """Return a row's own value if it has calls, else the sum below it, and whether there is any."""
    full = find_metric(metric, profile.columns)
    if full is None or not profile.columns[full].kind.is_number:
        raise unknown_metric(metric, profile.columns)
    column, own = profile.columns[full], has_own_calls(profile)
    known = column.known
    values = np.where(own, np.where(known, column.values, 0), profile.inclusive(full))
    return values, np.where(own, known, profile.covered(full))
