"""Scales benchmarks of several runs to equal numbers of calls.

Calibration decides how often a benchmark is called: how many calls make a round, and how many
rounds fit into its time. So values from its rounds are scaled to the calls of the first run that
has the benchmark, preferably a base run. Sums stay those of a run with that many calls.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from proton_bench.model.arrays import Array, Floats, Integers
from proton_bench.model.benchmark_columns import BENCHMARK, CALLS, FLUSH, ROUNDS, WARM_UP
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, ValueKind
from proton_bench.model.metrics.wall_times import WALL
from proton_bench.model.profile import Profile

# A number of repetitions, not a part of the work.
_KEPT = frozenset({ROUNDS, CALLS})
# Larger whole numbers have no exact quotient.
_LARGEST = 2.0**53

# A benchmark by its id; several rows of one id are reported apart by their order.
_Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class BenchmarkCalls:
    """Calls of a benchmark that differ between runs.

    Attributes:
        id: Name of the benchmark.
        calls: The number that all values are scaled to.
        base: Calls of each base run, None if it lacks the benchmark.
        new: Calls of each new run.
    """

    id: str
    calls: int
    base: tuple[int | None, ...]
    new: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class _Parts:
    """Parts of a benchmark that depend on calibration, by name: the row and its repetitions."""

    rows: Mapping[str, int]
    times: Mapping[str, int]


def with_equal_calls(
    base: Sequence[Profile], new: Sequence[Profile]
) -> tuple[list[Profile], tuple[BenchmarkCalls, ...]]:
    """Return all profiles, base first, with benchmarks scaled to equal calls, and the scaled ones.

    Args:
        base: Runs to compare with.
        new: Runs that are compared.
    """
    profiles = [*base, *new]
    found = [_benchmarks(profile) for profile in profiles]
    wanted: dict[_Key, _Parts] = {}
    for each in reversed(found):
        wanted.update(each)
    scaled = [_scaled(profile, own, wanted) for profile, own in zip(profiles, found, strict=True)]
    reported = []
    for key in dict.fromkeys(key for each in found for key in each):
        calls = [each[key].times[ROUNDS] if key in each else None for each in found]
        if len({each for each in calls if each is not None}) > 1:
            sides = tuple(calls[: len(base)]), tuple(calls[len(base) :])
            reported.append(BenchmarkCalls(key[0], wanted[key].times[ROUNDS], *sides))
    return scaled, tuple(reported)


def _benchmarks(profile: Profile) -> dict[_Key, _Parts]:
    ids, calls = profile.columns.get(BENCHMARK), profile.columns.get(CALLS)
    if ids is None or calls is None or ids.kind is not ValueKind.STR or not calls.kind.is_number:
        return {}
    found: dict[_Key, _Parts] = {}
    seen: Counter[str] = Counter()
    end = 0
    for row in np.flatnonzero(ids.valid & calls.valid & (calls.values > 0)).tolist():
        if row < end:  # inside of a benchmark's rounds
            continue
        end = int(profile.subtree_end[row])
        id = ids.strings[int(ids.values[row])]
        found[id, seen[id]] = _parts(profile, row)
        seen[id] += 1
    return found


def _parts(profile: Profile, row: int) -> _Parts:
    rows, times = {ROUNDS: row}, {ROUNDS: _number(profile, CALLS, row)}
    above = int(profile.parents[row])
    for beside in profile.children(above) if above >= 0 else ():
        name = profile.name(beside)
        if name not in {WARM_UP, FLUSH} or beside == row:
            continue
        # One flush before each round, and one before the trial that sets the number of rounds.
        flushes = _number(profile, ROUNDS, row) + 1 if name == FLUSH else 0
        done = _number(profile, CALLS, beside) or flushes
        if done > 0:
            rows[name], times[name] = beside, done
    return _Parts(rows, times)


def _number(profile: Profile, metric: str, row: int) -> int:
    column = profile.columns.get(metric)
    if column is None or not column.kind.is_number or not column.valid[row]:
        return 0
    return round(float(column.values[row]))


def _scaled(profile: Profile, own: Mapping[_Key, _Parts], wanted: Mapping[_Key, _Parts]) -> Profile:
    factors = np.ones(len(profile), dtype=np.int64)
    divisors = np.ones(len(profile), dtype=np.int64)
    heads: list[int] = []
    for key, parts in own.items():
        for name, row in parts.rows.items():
            done, asked = parts.times[name], wanted[key].times.get(name, parts.times[name])
            if done == asked:
                continue
            common = math.gcd(done, asked)
            below = slice(row, int(profile.subtree_end[row]))
            factors[below], divisors[below] = asked // common, done // common
            heads.append(row)
    if not heads:
        return profile
    columns = {}
    for name, column in profile.columns.items():
        is_amount = column.kind.is_number and column.spec.aggregation is not Aggregation.PROPERTY
        if not is_amount or name in _KEPT:
            columns[name] = column
            continue
        values = _multiplied(column, factors, divisors)
        for head in heads if name == WALL else ():
            # It includes the rows below; a missing value is 0 before and after.
            values[_above(profile, head)] += values[head] - column.values[head]
        kind = ValueKind.FLOAT if values.dtype.kind == "f" else ValueKind.INT
        columns[name] = replace(column, kind=kind, values=np.where(column.valid, values, 0))
    return replace(profile, columns=columns)


def _above(profile: Profile, row: int) -> list[int]:
    """Return the rows above, whose wall time includes that of the row."""
    found = []
    while (row := int(profile.parents[row])) >= 0:
        found.append(row)
    return found


def _multiplied(column: MetricColumn, factors: Integers, divisors: Integers) -> Array:
    values = column.values.copy()
    chosen = np.flatnonzero((factors != divisors) & column.valid)
    if not len(chosen):
        return values
    products = values[chosen] * factors[chosen].astype(np.float64)
    found = np.where(
        np.abs(products) < _LARGEST,
        products / divisors[chosen],
        values[chosen] * (factors[chosen] / divisors[chosen]),
    )
    values = values.astype(np.float64) if _has_fractions(found) else values
    values[chosen] = found
    return values


def _has_fractions(values: Floats) -> bool:
    return bool((np.abs(values) >= _LARGEST).any() or (values != np.rint(values)).any())
