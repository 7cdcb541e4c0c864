"""Records of benchmarks, and runs that hold them, with times that follow from a seed."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from proton_bench.analysis.run import Run
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.pytest_plugin.benchmarks.settings import Settings
from proton_bench.rounds.in_profile import profile_of
from proton_bench.rounds.record import BenchmarkRecord

ROUNDS = 5


def record_of(test: str = "test_x.py::test_a", **changes: object) -> BenchmarkRecord:
    """Return a record of a test without a GPU."""
    nodes = [("session", FrameKind.TEST), *((name, FrameKind.TEST) for name in test.split("::"))]
    record = BenchmarkRecord(
        id=test,
        node_id=test,
        parameters={},
        device="cpu",
        metric="cpu",
        calls=4,
        cpu_ns=(100e3, 101e3, 102e3),
        gpu_ns=(),
        warmup=0,
        flush_l2=False,
        cudagraph=False,
        threshold="",
        flops=0.0,
        bytes=0.0,
        extra_info={},
        path=tuple(
            (name, int(kind))
            for name, kind in [*nodes, ("call", FrameKind.TEST), ("rounds", FrameKind.SCOPE)]
        ),
        worker="",
    )
    return replace(record, **changes)  # type: ignore[arg-type]


def profile_with(records: Sequence[BenchmarkRecord], run: int, **more: object) -> Profile:
    """Return a profile of one process on one machine."""
    times = {"start_time_ns": run * 1000, "end_time_ns": run * 1000 + 10}
    facts = {"host": "host", "parts": None, **times, **more}
    profile = profile_of(records)
    return replace(profile, provenance=profile.provenance.updated(**facts))


def runs_of(
    means_us: Mapping[str, float],
    *,
    runs: int,
    seed: int,
    first: int = 0,
    thresholds: Mapping[str, str] | None = None,
    rounds: int = ROUNDS,
    calls: int = 4,
    **facts: object,
) -> list[Run]:
    """Return runs in which each benchmark takes its time within half a per cent."""
    noise = random.Random(seed)
    found = []
    for number in range(first, first + runs):
        records = []
        for test, mean in means_us.items():
            typical = mean * 1e3 * noise.gauss(1.0, 0.005)
            times = tuple(typical * noise.gauss(1.0, 0.002) for _ in range(rounds))
            marked = (thresholds or {}).get(test, "")
            records.append(record_of(test, cpu_ns=times, calls=calls, threshold=marked))
        found.append(Run(profile_with(records, number, **facts), f"run-{number}.proton"))
    return found


def settings_of(folder: Path, **changes: object) -> Settings:
    """Return the settings of a test run that compares six processes with ``main``."""
    settings = Settings(
        disable=False,
        compare=("main",),
        compare_fail=(),
        project=folder,
        runs=6,
        save="",
        storage=folder / "store",
        json=None,
        replicate=None,
    )
    return replace(settings, **changes)  # type: ignore[arg-type]


class Replayed:
    """Fresh processes that recorded these runs, in place of `FreshRuns`.

    Args:
        runs: What they recorded.
        at_once: Whether all of them have run before the first look.

    Attributes:
        count: How many were asked for.
    """

    def __init__(self, runs: Sequence[Run], *, at_once: bool = False) -> None:
        self._runs = tuple(runs)
        self._at_once = at_once
        self.count = self.fewest = self.most = 0

    def offered(
        self, *_: object, fewest: int, most: int
    ) -> contextlib.AbstractContextManager[Replayed]:
        """Stand in for `fresh_runs_of`."""
        self.fewest, self.most = fewest, most
        return contextlib.nullcontext(self)

    def first(self, count: int) -> tuple[Run, ...]:
        """Return the first runs."""
        self.count = count
        return self._runs if self._at_once else self._runs[:count]

    def say(self, text: str) -> None:
        """Show nothing."""
