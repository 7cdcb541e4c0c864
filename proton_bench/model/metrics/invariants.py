"""Rules for the numbers of every profile, recorded or merged.

A well-formed file can have impossible numbers: a mean below the smallest sample, more samples than
calls. `proton doctor FILE` names such rows. With PROTON_BENCH_CHECK=1, which tests set, reading a
file does too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from proton_bench.model.arrays import Floats, Integers, Mask
from proton_bench.model.metrics.distribution_table import SUM_ERROR, DistributionTable
from proton_bench.model.metrics.metric import Aggregation, MetricColumn
from proton_bench.model.profile import Profile

# Rounding to float32, with some tolerance.
_FLOAT32 = 1e-6

_CALLS = "count"
# The metric whose samples are calls, each counted once.
_CALL_TIME = "time (ns)"


@dataclass(frozen=True, slots=True)
class Violation:
    """Inconsistent numbers of one row.

    Attributes:
        row: The row.
        metric: Full name of the metric.
        rule: The broken rule, such as ``minimum <= maximum``.
        numbers: The numbers.
    """

    row: int
    metric: str
    rule: str
    numbers: str


def violations(profile: Profile) -> tuple[Violation, ...]:
    """Return every row with inconsistent numbers, in order."""
    found: list[Violation] = []
    calls = profile.columns.get(_CALLS)
    if calls is not None and not calls.kind.is_number:
        calls = None
    for name, table in profile.distributions.items():
        found += _broken_samples(name, table)
        column = profile.columns.get(name)
        if column is not None and column.kind.is_number:
            found += _broken_sums(table, column, calls)
        if name == _CALL_TIME and calls is not None:
            found += _broken_calls(table, calls)
    if calls is not None:
        rows = np.flatnonzero(calls.valid & (calls.values < 0))
        found += [
            Violation(row, _CALLS, "count >= 0", f"count {calls.values[row]}")
            for row in rows.tolist()
        ]
    return tuple(sorted(found, key=lambda each: each.row))


def _broken_samples(name: str, table: DistributionTable) -> Iterator[Violation]:
    """Yield inconsistencies within the samples of a row."""
    with np.errstate(all="ignore"):
        rules = _sample_rules(table)
    for rule, holds in rules.items():
        for place in np.flatnonzero(~holds).tolist():
            numbers = (
                f"n {table.n[place]}, sum {table.total[place]:.17g}, "
                f"minimum {table.minimum[place]:.17g}, maximum {table.maximum[place]:.17g}"
            )
            yield Violation(int(table.rows[place]), name, rule, numbers)


def _sample_rules(table: DistributionTable) -> dict[str, Mask]:
    """Return which distributions satisfy each rule."""
    n, low, high, total = table.n.astype("f8"), table.minimum, table.maximum, table.total
    some = table.n > 0
    # Errors of naive sums grow with the number of terms.
    rounding = SUM_ERROR + 2.0 * np.finfo("f8").eps * n
    slack = rounding * (np.abs(total) + n * np.maximum(np.abs(low), np.abs(high)))
    positive = np.maximum(n - table.zero_count, 0)
    squares = table.sum_ln2
    square_slack = rounding * (1.0 + squares)
    largest_ln = np.maximum(np.log(low) ** 2, np.log(high) ** 2)
    least, most, counted, outer = _bounds(table)
    has_buckets = np.diff(table.bucket_offsets) > 0
    is_whole = some & (has_buckets | (np.diff(table.sample_offsets) == table.n))
    return {
        "minimum <= maximum": ~some | (low <= high),
        "n x minimum <= sum": ~some | (n * low <= total + slack),
        "sum <= n x maximum": ~some | (total <= n * high + slack),
        "non-positive samples <= n": table.zero_count <= table.n,
        "buckets hold n samples": ~has_buckets | (counted + table.zero_count == n),
        "no more samples kept than there were": np.diff(table.sample_offsets) <= table.n,
        "the outermost samples are minimum and maximum": ~is_whole | outer,
        "the sum is that of kept samples or buckets": ~is_whole
        | ((least <= total + slack) & (total <= most + slack)),
        "sum of squares >= square of sum / n": squares - table.sum_ln**2 / np.maximum(positive, 1)
        >= -square_slack,
        "sum of squares <= n x the largest": ~(some & (low > 0))
        | (squares <= positive * largest_ln + square_slack),
    }


def _bounds(table: DistributionTable) -> tuple[Floats, Floats, Floats, Mask]:
    """Return least and greatest sums, samples in buckets, and whether ends match extremes."""
    size = len(table)
    least, most, counted = np.zeros(size), np.zeros(size), np.zeros(size)
    outer = np.ones(size, dtype=np.bool_)
    kept = np.repeat(np.arange(size), np.diff(table.sample_offsets))
    values = table.samples.astype("f8")
    slack = _FLOAT32 * np.abs(values) + float(np.finfo("f4").tiny)
    is_raw = np.diff(table.bucket_offsets) == 0
    np.add.at(least, kept, np.where(is_raw[kept], values - slack, 0.0))
    np.add.at(most, kept, np.where(is_raw[kept], values + slack, 0.0))
    ends = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(ends[0], kept, values - slack)
    np.maximum.at(ends[1], kept, values + slack)
    room = 2.0 * _FLOAT32 * np.maximum(np.abs(table.minimum), np.abs(table.maximum))
    room += 2.0 * float(np.finfo("f4").tiny)
    for end, extreme in zip(ends, (table.minimum, table.maximum), strict=True):
        outer &= ~is_raw | ~np.isfinite(end) | (np.abs(end - extreme) <= room)
    _add_buckets(table, least, most, counted=counted)
    return least, most, counted, outer & _buckets_fit(table)


def _add_buckets(table: DistributionTable, least: Floats, most: Floats, *, counted: Floats) -> None:
    """Add the bounds of samples in buckets, and their number."""
    owners = np.repeat(np.arange(len(table)), np.diff(table.bucket_offsets))
    lows, highs = _edges(table, owners)
    counts = table.bucket_count.astype("f8")
    np.add.at(counted, owners, counts)
    for sums, edges in ((least, lows), (most, highs)):
        inside = np.clip(edges, table.minimum[owners], table.maximum[owners])
        np.add.at(sums, owners, counts * inside)
    has_buckets = np.diff(table.bucket_offsets) > 0
    least += np.where(has_buckets, table.zero_count * np.minimum(table.minimum, 0.0), 0.0)


def _buckets_fit(table: DistributionTable) -> Mask:
    """Return whether the extremes are in the outermost buckets."""
    firsts, ends = table.bucket_offsets[:-1], table.bucket_offsets[1:]
    some = np.flatnonzero(ends > firsts)
    found = np.ones(len(table), dtype=np.bool_)
    owners = np.repeat(np.arange(len(table)), np.diff(table.bucket_offsets))
    lows, highs = _edges(table, owners)
    low, high = table.minimum[some], table.maximum[some]
    first, last = firsts[some], ends[some] - 1
    # If there are samples that are not positive, one of them is the least.
    below = (table.zero_count[some] > 0) | ((low <= highs[first]) & (low >= lows[first]))
    found[some] = below & (high <= highs[last]) & (high >= lows[last])
    return found


def _edges(table: DistributionTable, owners: Integers) -> tuple[Floats, Floats]:
    steps = np.ldexp(np.log(table.gamma), table.collapses[owners].astype("i8"))
    upper = table.bucket_index * steps
    lows = np.exp(upper - steps) * (1.0 - _FLOAT32) / (1.0 + table.value_error)
    is_open = (table.open_below != 0) & (np.diff(table.bucket_offsets) > 0)
    lows[table.bucket_offsets[:-1][is_open]] = -np.inf
    return lows, np.exp(upper) * (1.0 + _FLOAT32) / (1.0 - table.value_error)


def _broken_sums(
    table: DistributionTable, column: MetricColumn, calls: MetricColumn | None
) -> Iterator[Violation]:
    """Yield rows whose samples add up to more or less than the row's value.

    Less is allowed if only some calls have samples, as in merged files.
    """
    if column.spec.aggregation is Aggregation.PROPERTY:
        return
    rows = table.rows
    own = np.where(column.valid[rows], column.values[rows].astype("f8"), 0.0)
    slack = SUM_ERROR * (np.abs(own) + np.abs(table.total))
    counted = np.zeros(len(table), dtype=np.bool_)
    if calls is not None and column.spec.aggregation is Aggregation.INCLUSIVE:
        counted = calls.valid[rows] & (calls.values[rows] == table.n)
    # Values that can be negative may add up to anything.
    broken = (table.minimum >= 0) & (table.total > own + slack)
    broken |= counted & (np.abs(table.total - own) > slack)
    for place in np.flatnonzero(broken).tolist():
        numbers = f"samples add up to {table.total[place]:.17g}, the row has {own[place]:.17g}"
        yield Violation(
            int(rows[place]), column.spec.name, "the samples add up to the value", numbers
        )


def _broken_calls(table: DistributionTable, calls: MetricColumn) -> Iterator[Violation]:
    """Yield rows with more samples than calls."""
    rows = table.rows
    own = np.where(calls.valid[rows], calls.values[rows].astype("f8"), 0.0)
    for place in np.flatnonzero(table.n > own).tolist():
        numbers = f"{table.n[place]} samples, {own[place]:.17g} calls"
        yield Violation(int(rows[place]), _CALL_TIME, "samples <= calls of the row", numbers)
