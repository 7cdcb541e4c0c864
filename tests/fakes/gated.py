"""Runs of a gate: processes that launch kernels, with noise within and between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from fakes.timed import GPU, H200, profile_of_times

from proton_bench.analysis.run import Run
from proton_bench.gate.verdict.result import GateResult, GateRow, Reason

__all__ = [
    "GPU",
    "H200",
    "SECOND_NS",
    "Kernel",
    "process",
    "profile_of_times",
    "reasons_of",
    "row_of",
    "session",
]

SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class Kernel:
    """One kernel of a made-up program; ``slower`` is on the log scale and on the new side alone."""

    path: str
    time_ns: float = 100_000.0
    between: float = 0.004
    within: float = 0.01
    slower: float = 0.0
    launches: int = 20
    code: str = ""
    new_code: str | None = None
    new_launches: int | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)


def process(
    kernels: Sequence[Kernel],
    rng: np.random.Generator,
    *,
    new: bool,
    at: int,
    shared: float = 0.001,
    **facts: Any,
) -> Run:
    """Return one run that began at second ``at`` and lasted half a second.

    Args:
        kernels: What it launches.
        rng: For its noise.
        new: Whether it is of the new side.
        at: When it began.
        shared: Spread of what all kernels of a run share.
        facts: Its provenance.
    """
    times, codes = {}, {}
    common = rng.normal(0.0, shared)
    for each in kernels:
        middle = np.log(each.time_ns) + common + rng.normal(0.0, each.between)
        middle += each.slower if new else 0.0
        count = each.new_launches if new and each.new_launches is not None else each.launches
        times[each.path] = np.exp(middle + rng.normal(0.0, each.within, count))
        changed = new and each.new_code is not None
        codes[each.path] = each.new_code or "" if changed else each.code
    span = {"start_time_ns": at * SECOND_NS, "end_time_ns": at * SECOND_NS + SECOND_NS // 2}
    metrics = {each.path: each.metrics for each in kernels}
    profile = profile_of_times(times, codes=codes, metrics=metrics, provenance={**span, **facts})
    return Run(profile, f"{'new' if new else 'base'}{at}.proton")


def session(
    kernels: Sequence[Kernel],
    *,
    pairs: int = 6,
    seed: int = 1,
    drift: float = 0.0,
    shared: float = 0.001,
) -> tuple[list[Run], list[Run]]:
    """Return runs of both sides in the order ABBA, the base first in the first pair."""
    rng = np.random.default_rng(seed)
    base, new = [], []
    for pair in range(pairs):
        for slot in range(2):
            is_new = (slot == 1) == (pair % 2 == 0)
            at = 2 * pair + slot
            drifted = [
                Kernel(**{**vars(each), "time_ns": each.time_ns * np.exp(drift * at)})
                for each in kernels
            ]
            (new if is_new else base).append(
                process(drifted, rng, new=is_new, at=at, shared=shared)
            )
    return base, new


def row_of(result: GateResult, path: str = "f/k0") -> GateRow:
    """Return the one row of a path, without that of its slowest launches."""
    (row,) = [row for row in result.rows if "/".join(row.path) == path and not row.is_extra]
    return row


def reasons_of(result: GateResult) -> set[Reason]:
    """Return the reasons of the notes on a gate."""
    return {note.reason for note in result.notes}
