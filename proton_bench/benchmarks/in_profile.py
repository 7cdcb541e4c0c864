"""Benchmarks in profiles: how their rounds get in, and what of a profile the gate looks at."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from proton_bench.benchmarks.record import REPLICATE, BenchmarkRecord
from proton_bench.errors import UsageError
from proton_bench.gate.canary import CANARY_SCOPE
from proton_bench.profile import (
    Aggregation,
    Distribution,
    FrameKind,
    MetricColumn,
    Profile,
    ProfileBuilder,
)

__all__ = ["ROUND", "gated_profile", "profile_of"]

# Row of the gate that stands for the whole function.
ROUND = "round"
_ID, _REPLICATE, _CLOCK = "benchmark", "replicate", "clock"
_ROUNDS, _CALLS = "rounds", "calls"
_CPU, _GPU = "cpu_round (ns)", "gpu_round (ns)"
_TIME = "time (ns)"
# A benchmark's time is told by its rounds.
_LEFT_OUT = frozenset({"wall (ns)", _ROUNDS, _CALLS, _CPU, _GPU})


def profile_of(records: Sequence[BenchmarkRecord]) -> Profile:
    """Return a profile that holds the rounds of benchmarks below the nodes of their tests.

    Each row says in ``replicate`` that all its rounds are one replicate: that of their process.
    """
    builder = ProfileBuilder()
    for metric in (_CPU, _GPU):
        builder.declare(metric, Aggregation.PROPERTY)
    for metric in (_ROUNDS, _CALLS):
        builder.declare(metric, Aggregation.EXCLUSIVE)
    rows: dict[tuple[tuple[str, int], ...], int] = {(): 0}
    for record in records:
        for depth in range(1, len(record.path) + 1):
            place = record.path[:depth]
            if place not in rows:
                name, kind = place[-1]
                rows[place] = builder.add(rows[place[:-1]], name, FrameKind(kind))
        _set(builder, rows[record.path], record)
    # No part of its own: what it holds was measured by the process that adopts it.
    return builder.build(provenance={"parts": []})


def _set(builder: ProfileBuilder, row: int, record: BenchmarkRecord) -> None:
    calls = record.calls * len(record.cpu_ns)
    builder.set(row, _ID, record.id)
    builder.set(row, _REPLICATE, REPLICATE)
    builder.set(row, _CLOCK, "gpu" if record.gated_ns is record.gpu_ns else "cpu")
    builder.set(row, _ROUNDS, len(record.cpu_ns))
    builder.set(row, _CALLS, calls)
    for name, amount in (("flops", record.flops), ("bytes", record.bytes)):
        if amount:
            builder.set(row, name, amount * calls)
    for metric, times in ((_CPU, record.cpu_ns), (_GPU, record.gpu_ns)):
        if times:
            builder.set(row, metric, statistics.median(times))
            builder.set_distribution(row, metric, Distribution.from_samples(times))


def gated_profile(profile: Profile, source: str) -> Profile:
    """Return what the gate compares: benchmarks by their ids, all values for one call.

    Below each stands ``round`` with the times of its rounds, and what was recorded while they ran.
    Set-up, warm-up and flushes of the cache are left out; canaries stay. As the number of rounds is
    a matter of calibration, sums are divided by the calls.

    Raises:
        UsageError: The profile holds no benchmark.
    """
    ids = _texts(profile, _ID)
    if not ids:
        raise UsageError(
            f"{source} holds no benchmark of pytest: save one with `pytest --proton-save=NAME`"
        )
    builder = ProfileBuilder()
    for device in profile.devices:
        builder.device(device)
    for metric, column in profile.columns.items():
        builder.declare(metric, column.spec.aggregation)
    for row, name in ids.items():
        _copy(profile, builder, row, name=name)
    for row in profile.children(0):
        if profile.name(row) == CANARY_SCOPE:
            _copy(profile, builder, row, name=CANARY_SCOPE)
    return builder.build(
        provenance=profile.provenance.to_plain(),
        dropped=profile.dropped,
        partial=profile.partial,
    )


def _copy(profile: Profile, builder: ProfileBuilder, root: int, *, name: str) -> None:
    places = {root: builder.add(0, name, FrameKind.TEST)}
    clock = _texts(profile, _CLOCK).get(root, "cpu")
    times = _distribution(profile, _GPU if clock == "gpu" else _CPU, root)
    if times is not None:
        leaf = builder.add(places[root], ROUND, FrameKind.SCOPE, metrics={_TIME: times.mean})
        builder.set_distribution(leaf, _TIME, times)
    calls = float(_number(profile, _CALLS, root) or 1.0)
    columns = [
        column
        for metric, column in profile.columns.items()
        if column.kind.is_number and metric not in _LEFT_OUT
    ]
    for row in range(root + 1, int(profile.subtree_end[root])):
        places[row] = builder.add(
            places[int(profile.parents[row])],
            profile.name(row),
            profile.kind(row),
            metrics=dict(_values(columns, row, calls)),
            device=profile.device(row),
            variant=profile.variant(row),
        )
        for metric, table in profile.distributions.items():
            found = None if metric in _LEFT_OUT else table.get(row)
            if found is not None:
                builder.set_distribution(places[row], metric, found)


def _values(columns: Sequence[MetricColumn], row: int, calls: float) -> Iterator[tuple[str, float]]:
    for column in columns:
        if column.valid[row]:
            adds_up = column.spec.aggregation is not Aggregation.PROPERTY
            yield column.spec.name, float(column.values[row]) / (calls if adds_up else 1.0)


def _texts(profile: Profile, metric: str) -> dict[int, str]:
    column = profile.columns.get(metric)
    if column is None or column.kind.is_number or column.kind.is_vector:
        return {}
    return {
        row: column.strings[int(column.values[row])]
        for row in range(len(profile))
        if column.valid[row]
    }


def _number(profile: Profile, metric: str, row: int) -> float | None:
    column = profile.columns.get(metric)
    if column is None or not column.kind.is_number or not column.valid[row]:
        return None
    return float(column.values[row])


def _distribution(profile: Profile, metric: str, row: int) -> Distribution | None:
    table = profile.distributions.get(metric)
    return None if table is None else table.get(row)
