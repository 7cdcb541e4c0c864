"""Adds rounds of benchmarks to profiles, from which `gate.verdict.benchmarks` reads them."""

from __future__ import annotations

from collections.abc import Sequence

from proton_bench.model.benchmark_columns import (
    BENCHMARK,
    CALLS,
    CLOCK,
    CPU_ROUND,
    GPU_ROUND,
    REPLICATE_COLUMN,
    ROUNDS,
    THRESHOLD,
    WARM_UP,
)
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile
from proton_bench.rounds.measurement import median_of
from proton_bench.rounds.record import REPLICATE, BenchmarkRecord


def profile_of(records: Sequence[BenchmarkRecord]) -> Profile:
    """Return a profile that holds the rounds of benchmarks below the nodes of their tests.

    Each row says in ``replicate`` that all its rounds are one replicate: that of their process.
    """
    builder = ProfileBuilder()
    for metric in (CPU_ROUND, GPU_ROUND):
        builder.declare(metric, Aggregation.PROPERTY)
    for metric in (ROUNDS, CALLS):
        builder.declare(metric, Aggregation.EXCLUSIVE)
    rows: dict[tuple[tuple[str, int], ...], int] = {(): 0}
    for record in records:
        for depth in range(1, len(record.path) + 1):
            place = record.path[:depth]
            if place not in rows:
                name, kind = place[-1]
                rows[place] = builder.add(rows[place[:-1]], name, FrameKind(kind))
        _set(builder, rows[record.path], record)
        if record.warmup:
            # Beside the rounds, where `measure` opened it; its work depends on calibration.
            above, kind = record.path[:-1], record.path[-1][1]
            warm_up = rows.get((*above, (WARM_UP, kind)))
            if warm_up is None:
                warm_up = rows[*above, (WARM_UP, kind)] = builder.add(
                    rows[above], WARM_UP, FrameKind(kind)
                )
            builder.set(warm_up, CALLS, record.warmup)
    # Not a part of its own: the process that merges it measured it.
    return builder.build(provenance={"parts": []})


def _set(builder: ProfileBuilder, row: int, record: BenchmarkRecord) -> None:
    calls = record.calls * len(record.cpu_ns)
    builder.set(row, BENCHMARK, record.id)
    builder.set(row, REPLICATE_COLUMN, REPLICATE)
    builder.set(row, CLOCK, record.clock)
    builder.set(row, ROUNDS, len(record.cpu_ns))
    builder.set(row, CALLS, calls)
    if record.threshold:
        builder.set(row, THRESHOLD, record.threshold)
    for name, amount in (("flops", record.flops), ("bytes", record.bytes)):
        if amount:
            builder.set(row, name, amount * calls)
    for metric, times, tick_ns in (
        (CPU_ROUND, record.cpu_ns, 0.0),
        (GPU_ROUND, record.gpu_ns, record.tick_ns),
    ):
        if times:
            builder.set(row, metric, median_of(times, tick_ns))
            builder.set_distribution(row, metric, Distribution.from_samples(times))
