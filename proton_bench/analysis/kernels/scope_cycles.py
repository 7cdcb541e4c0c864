"""Metrics of scopes inside kernels: mean cycles of an instance, and coverage."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from proton_bench.analysis.metrics.formula import unknown_metric
from proton_bench.analysis.metrics.values import (
    DerivedMetric,
    MetricValues,
    own_numbers,
    quotient,
)
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile

CYCLES = "cycles"
COVERAGE = "coverage"
INSTANCES = "instances"
INSTRUMENTED = "instrumented_launches"
KEPT = "kept_records"
LOST = "lost_records"
_MEAN = "avg_cycles"


def _offered(profile: Profile, numbers: Sequence[str]) -> tuple[str, ...]:
    del profile
    known = set(numbers)
    names = [_MEAN] if {CYCLES, INSTANCES} <= known else []
    return (*names, COVERAGE) if LOST in known else tuple(names)


def _values(profile: Profile, name: str) -> MetricValues:
    text = name.strip().lower()
    needed = (CYCLES, INSTANCES) if text == _MEAN else (KEPT,)
    if any(column not in profile.columns for column in needed):
        raise unknown_metric(name, profile.columns)
    if text == COVERAGE:
        return _coverage(profile)
    cycles = profile.columns[CYCLES]
    whole = cycles.values
    if cycles.spec.aggregation is Aggregation.INCLUSIVE:  # of timelines: own cycles, less nested
        whole = profile.inclusive(CYCLES)
    values, valid = quotient(whole, own_numbers(profile, INSTANCES), cycles.valid)
    return MetricValues(text, Aggregation.EXCLUSIVE, values, valid, "of one pass of the scope")


def _coverage(profile: Profile) -> MetricValues:
    """The scopes of lost records are unknown, so all scopes of a kernel have its coverage."""
    kept, lost = own_numbers(profile, KEPT), own_numbers(profile, LOST)
    values, valid = np.full(len(profile), np.nan), np.zeros(len(profile), dtype=np.bool_)
    for row in np.flatnonzero(kept + lost):
        below = slice(row, profile.subtree_end[row])
        values[below] = 100.0 * kept[row] / (kept[row] + lost[row])
        valid[below] = True
    meaning = "percent of the records inside the kernel that were kept"
    return MetricValues(COVERAGE, Aggregation.PROPERTY, values, valid, meaning)


# ``avg_cycles`` of one pair of records, and ``coverage``: percent of the records.
SCOPE_METRICS = DerivedMetric(re.compile(f"{_MEAN}|{COVERAGE}"), offered=_offered, values=_values)
