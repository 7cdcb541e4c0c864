"""Means that stay correct when rows are summed: two columns, of value x weight and of the weight.

A mean cannot be added up; both of its parts can. `with_mean` puts them into a profile, folding and
pruning sum them like any metric, and `mean_values` divides at the end, for every row and scope.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.metrics.values import MetricValues, quotient
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, MetricSpec, ValueKind
from proton_bench.model.profile import Profile

__all__ = ["is_part_of_mean", "mean_names", "mean_values", "with_mean"]

_SUM = "weighted sum of "
_WEIGHT = "weight of "
_MEANING = "mean over the kernels of the row and all rows below it, weighted by time"


def with_mean(
    profile: Profile, name: str, *, values: npt.NDArray[Any], weights: npt.NDArray[Any]
) -> Profile:
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
