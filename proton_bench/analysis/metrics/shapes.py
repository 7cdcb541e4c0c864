"""``shapes``: the arguments of operators and kernels, one row for each set of them."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from proton_bench.analysis.metrics.values import DerivedMetric, MetricValues
from proton_bench.errors import MetricError
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile

_NAME = "shapes"


def shows_shapes(metrics: Iterable[str]) -> bool:
    """Return whether the metric is among these names: rows of other shapes then stay apart."""
    return any(name.strip().lower() == _NAME for name in metrics)


def _has_any(profile: Profile) -> bool:
    return any(each.signature for each in profile.variants)


def _values(profile: Profile, name: str) -> MetricValues:
    if not _has_any(profile):
        raise MetricError(
            f"metric {name!r} is not in this file: proton run -c shapes records it in .proton files"
        )
    texts = np.array([*(each.signature for each in profile.variants), ""], dtype=object)
    found = texts[profile.variant_rows]
    return MetricValues(
        _NAME, Aggregation.PROPERTY, found, found != "", "types and sizes of the arguments"
    )


SHAPES = DerivedMetric(
    re.compile(_NAME),
    offered=lambda profile, _: (_NAME,) if _has_any(profile) else (),
    values=_values,
)
