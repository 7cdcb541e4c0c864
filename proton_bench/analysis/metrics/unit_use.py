"""How busy the units of a GPU were, from hardware counters: ``dram_pct``, ``dram_err`` and so on.

A recording stores times and variances, which add up over rows, ranks and runs; they are divided
here. The names are ``<unit>_pct``, the share of what the unit can do at most, and ``<unit>_err``,
half of its 95 % interval in points. A share that is known less well than ``WIDEST`` is withheld.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.kernels.gpu_facts import are_missing
from proton_bench.analysis.metrics.formula import find_metric
from proton_bench.analysis.metrics.values import WIDEST, DerivedMetric, MetricValues, quotient
from proton_bench.errors import MetricError
from proton_bench.model import preorder
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.counter_columns import (
    COUNTED_TIME,
    SAMPLED_TIME,
    UNITS,
    bias_column,
    busy_column,
    variance_column,
)
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile

__all__ = [
    "UNIT_USE",
    "interval_half",
    "unit_use_names",
    "unit_use_values",
]


_KERNEL_TIME = "time (ns)"
_COVERAGE = "counter_coverage"
_SHARE, _ERROR = "_pct", "_err"
_95_PERCENT = 1.959964  # standard errors of a normal distribution
_HALF = "half of the 95 % interval, in points"
_SAMPLED_PART = "percent of the time of kernels that was sampled"


def unit_use_names(recorded: Iterable[str]) -> tuple[str, ...]:
    """Return the names that can be computed from these recorded metrics."""
    known = set(recorded)
    if COUNTED_TIME not in known:
        return ()
    units = [unit for unit in UNITS if busy_column(unit) in known]
    names = [f"{unit}{ending}" for unit in units for ending in (_SHARE, _ERROR)]
    return (*names, *((_COVERAGE,) if SAMPLED_TIME in known else ()))


def unit_use_values(profile: Profile, name: str) -> MetricValues:
    """Return one of these metrics for each row, from 0 to 100.

    Raises:
        MetricError: No counters were recorded, or not of this unit.
    """
    text = name.strip().lower()
    recorded = tuple(metric for metric, each in profile.columns.items() if each.kind.is_number)
    known = unit_use_names(recorded)
    if text not in known:
        have = f"known are {', '.join(known)}" if known else _none(profile)
        raise MetricError(f"metric {name!r} needs hardware counters: {have}")
    with np.errstate(over="ignore", invalid="ignore"):  # a file may hold any number
        return _values(profile, text, recorded)


def _none(profile: Profile) -> str:
    if are_missing(profile):
        return "this run asked for them in vain: proton view says why"
    return "this file has none: proton run -m counters records them"


def _values(profile: Profile, text: str, recorded: tuple[str, ...]) -> MetricValues:
    time = profile.inclusive(COUNTED_TIME)
    sampled = profile.covered(COUNTED_TIME) & (time > 0)
    if text == _COVERAGE:
        whole = np.maximum(time, _kernel_ns(profile))
        values, valid = quotient(100.0 * profile.inclusive(SAMPLED_TIME), whole, sampled)
        valid &= np.isfinite(values)
        return MetricValues(text, Aggregation.PROPERTY, values, valid, _SAMPLED_PART)
    unit = text.removesuffix(_SHARE).removesuffix(_ERROR)
    halves, valid = quotient(100.0 * _half_ns(profile, unit, recorded), time, sampled)
    valid &= np.isfinite(halves)
    if text.endswith(_ERROR):
        return MetricValues(text, Aggregation.PROPERTY, halves, valid, _HALF)
    values, valid = quotient(100.0 * profile.inclusive(busy_column(unit)), time, valid)
    valid &= np.isfinite(values) & (halves <= WIDEST)
    meaning = f"{UNITS[unit]}, % of the peak"
    return MetricValues(text, Aggregation.PROPERTY, values, valid, meaning, halves)


def _kernel_ns(profile: Profile) -> npt.NDArray[np.float64]:
    """Return the time of all kernels of each row: of merged runs some may have no counters."""
    column = profile.columns.get(_KERNEL_TIME)
    if column is None or not column.kind.is_number:
        return np.zeros(len(profile))
    is_kernel = column.known & (profile.kinds == FrameKind.KERNEL)
    own = np.where(is_kernel, column.values, 0).astype(np.float64)
    return preorder.sums(profile.parents, own)


def interval_half(
    variance: npt.NDArray[np.float64] | float, bias: npt.NDArray[np.float64] | float
) -> npt.NDArray[np.float64]:
    """Return half of the 95 % interval of the time in which a unit was busy, in ns.

    The variance of a row holds all of its error. In a sum of rows it forgets that a part of these
    errors is alike, which adds up as it is.

    Args:
        variance: Summed variances in ns^2.
        bias: Summed errors that come back in every row, in ns.
    """
    half: npt.NDArray[np.float64] = _95_PERCENT * np.maximum(
        np.sqrt(np.maximum(variance, 0.0)), bias
    )
    return half


def _half_ns(profile: Profile, unit: str, recorded: Iterable[str]) -> npt.NDArray[np.float64]:
    """Return half of the interval of a unit's time for each row; infinite if unknown."""
    known = tuple(recorded)
    variance = find_metric(variance_column(unit), known)
    if variance is None:
        return np.full(len(profile), np.inf)
    bias = find_metric(bias_column(unit), known)
    return interval_half(
        profile.inclusive(variance).astype(np.float64),
        profile.inclusive(bias).astype(np.float64) if bias is not None else 0.0,
    )


UNIT_USE = DerivedMetric(
    re.compile(rf"{_COVERAGE}|(?:{'|'.join(UNITS)})(?:{_SHARE}|{_ERROR})"),
    offered=lambda _, numbers: unit_use_names(numbers),
    values=unit_use_values,
)
