"""Bandwidth of rows that are collectives, as nccl-tests count it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from proton_bench.analysis.collectives import bus_factor, operations_of, whole_factor
from proton_bench.analysis.metrics.formula import find_metric
from proton_bench.analysis.metrics.values import (
    DerivedMetric,
    MetricValues,
    quotient,
    time_seconds,
)
from proton_bench.errors import MetricError
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile

BYTES = "comm_bytes"
_NAMES = ("algbw", "busbw")
_UNIT = 1e9
_MEANING = "GB/s of the operation{}, in all of its time, also that of waiting for other ranks"


def _offered(profile: Profile, numbers: Sequence[str]) -> Iterator[str]:
    if find_metric(BYTES, numbers) is not None and _sizes(profile):
        yield from _NAMES


def _sizes(profile: Profile) -> dict[str, int]:
    """Return the number of ranks by operation, without those that have groups of several sizes."""
    sizes: dict[str, set[int]] = {}
    for operation in operations_of(profile):
        sizes.setdefault(operation.name, set()).add(operation.size)
    return {name: min(found) for name, found in sizes.items() if len(found) == 1 and min(found)}


def _bandwidths(profile: Profile, name: str) -> MetricValues:
    sizes = _sizes(profile)
    full = find_metric(BYTES, profile.columns)
    if full is None or not sizes:
        raise MetricError(f"{name} needs the bytes of collectives, which this profile lacks")
    is_bus = name == _NAMES[1]
    factors = np.zeros(len(profile.strings))
    for number, text in enumerate(profile.strings):
        if size := sizes.get(text):
            factors[number] = whole_factor(text, size) * (bus_factor(text, size) if is_bus else 1)
    factor = factors[profile.frames]
    time = time_seconds(profile)
    sent = profile.inclusive(full).astype(np.float64) * factor / _UNIT
    values, known = quotient(sent, time.values, time.valid & (factor > 0) & (sent > 0))
    meaning = _MEANING.format(" on each link" if is_bus else "")
    return MetricValues(name, Aggregation.PROPERTY, values, known, meaning)


BANDWIDTHS = DerivedMetric(re.compile("|".join(_NAMES)), offered=_offered, values=_bandwidths)
