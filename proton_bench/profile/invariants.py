"""What must be true of the numbers of any profile, whoever recorded or merged it.

A file can be well-formed and still hold numbers that cannot be: a mean below the smallest sample,
more samples than calls. `proton doctor FILE` names such rows. With PROTON_BENCH_CHECK=1 reading a
file does, as the tests of this project have it everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from proton_bench.profile.distribution_table import DistributionTable
from proton_bench.profile.metric import Aggregation, MetricColumn
from proton_bench.profile.profile import Profile

__all__ = ["Violation", "violations"]

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.float64]

# Sums of floating-point numbers in another order; float32 of raw samples.
_ROUNDING = 1e-9
_FLOAT32 = 1e-6

_CALLS = "count"
# The metric whose samples are calls, each counted once.
_CALL_TIME = "time (ns)"


@dataclass(frozen=True, slots=True)
class Violation:
    """Numbers of one row that cannot be true together.

    Attributes:
        row: The row.
        metric: Full name of the metric.
        rule: What should hold, such as ``minimum <= maximum``.
        numbers: What is there instead.
    """

    row: int
    metric: str
    rule: str
    numbers: str


def violations(profile: Profile) -> tuple[Violation, ...]:
    """Return every row whose numbers contradict each other, in the order of the rows."""
    found: list[Violation] = []
    for name, table in profile.distributions.items():
        found += _broken_samples(name, table)
        column = profile.columns.get(name)
        if column is not None and column.kind.is_number:
            found += _broken_sums(table, column)
        calls = profile.columns.get(_CALLS)
        if name == _CALL_TIME and calls is not None and calls.kind.is_number:
            found += _broken_calls(table, calls)
    calls = profile.columns.get(_CALLS)
    if calls is not None and calls.kind.is_number:
        rows = np.flatnonzero(calls.valid & (calls.values < 0))
        found += [
            Violation(row, _CALLS, "count >= 0", f"count {calls.values[row]}")
            for row in rows.tolist()
        ]
    return tuple(sorted(found, key=lambda each: each.row))


def _broken_samples(name: str, table: DistributionTable) -> Iterator[Violation]:
    """Yield what is wrong within the samples of a row."""
    n = table.n.astype("f8")
    low, high, total = table.minimum, table.maximum, table.total
    slack = _ROUNDING * (np.abs(total) + n * np.maximum(np.abs(low), np.abs(high)))
    some = table.n > 0
    counted = _summed(table.bucket_count.astype("f8"), table.bucket_offsets) + table.zero_count
    has_buckets = np.diff(table.bucket_offsets) > 0
    kept = np.diff(table.sample_offsets)
    outside = _outside(table)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        positive = np.maximum(n - table.zero_count, 0)
        spread = table.sum_ln2 - table.sum_ln**2 / np.maximum(positive, 1)
    rules = {
        "minimum <= maximum": ~some | (low <= high),
        "n x minimum <= sum": ~some | (n * low <= total + slack),
        "sum <= n x maximum": ~some | (total <= n * high + slack),
        "non-positive samples <= n": table.zero_count <= table.n,
        "buckets hold n samples": ~has_buckets | (counted == n),
        "no more samples kept than there were": kept <= table.n,
        "kept samples and buckets lie between minimum and maximum": ~outside,
        "sum of squares >= square of sum / n": spread >= -_ROUNDING * (1.0 + table.sum_ln2),
    }
    for rule, holds in rules.items():
        for place in np.flatnonzero(~holds).tolist():
            numbers = (
                f"n {table.n[place]}, sum {total[place]:.17g}, minimum {low[place]:.17g}, "
                f"maximum {high[place]:.17g}"
            )
            yield Violation(int(table.rows[place]), name, rule, numbers)


def _outside(table: DistributionTable) -> Mask:
    """Tell which rows have a raw sample or a bucket beyond their extremes."""
    owners = np.repeat(np.arange(len(table)), np.diff(table.sample_offsets))
    values = table.samples.astype("f8")
    low, high = table.minimum[owners], table.maximum[owners]
    slack = _FLOAT32 * np.maximum(np.abs(low), np.abs(high)) + float(np.finfo("f4").tiny)
    wrong = owners[(values < low - slack) | (values > high + slack)]
    owners = np.repeat(np.arange(len(table)), np.diff(table.bucket_offsets))
    steps = np.ldexp(np.log(table.gamma), table.collapses[owners].astype("i8"))
    slack = np.log1p(table.value_error / (1.0 - table.value_error)) + _FLOAT32
    upper = table.bucket_index * steps
    with np.errstate(invalid="ignore", divide="ignore"):
        low, high = np.log(table.minimum[owners]), np.log(table.maximum[owners])
    # Non-positive minima have no logarithm, and bound no bucket.
    wrong = np.append(wrong, owners[(upper + slack < low) | (upper - steps - slack > high)])
    found = np.zeros(len(table), dtype=np.bool_)
    found[wrong] = True
    return found


def _summed(values: Numbers, offsets: npt.NDArray[np.int32]) -> Numbers:
    running = np.concatenate([[0.0], np.cumsum(values)])
    found: Numbers = running[offsets[1:]] - running[offsets[:-1]]
    return found


def _broken_sums(table: DistributionTable, column: MetricColumn) -> Iterator[Violation]:
    """Yield rows whose samples add up to more than the row holds of the metric.

    They may add up to less: where files are merged, some tell no samples.
    """
    if column.spec.aggregation is Aggregation.PROPERTY:
        return
    rows = table.rows
    own = np.where(column.valid[rows], column.values[rows].astype("f8"), 0.0)
    slack = _ROUNDING * (np.abs(own) + np.abs(table.total))
    # What can be negative adds up to anything.
    broken = (table.minimum >= 0) & (table.total > own + slack)
    for place in np.flatnonzero(broken).tolist():
        numbers = f"samples add up to {table.total[place]:.17g}, the row has {own[place]:.17g}"
        yield Violation(int(rows[place]), column.spec.name, "sum of samples <= value", numbers)


def _broken_calls(table: DistributionTable, calls: MetricColumn) -> Iterator[Violation]:
    """Yield rows with more samples than calls."""
    rows = table.rows
    own = np.where(calls.valid[rows], calls.values[rows].astype("f8"), 0.0)
    for place in np.flatnonzero(table.n > own).tolist():
        numbers = f"{table.n[place]} samples, {own[place]:.17g} calls"
        yield Violation(int(rows[place]), _CALL_TIME, "samples <= calls of the row", numbers)
