"""Timelines of made-up runs, read back, agree with the trees of the same runs."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fakes.recordings import write_recording
from hypothesis import given, settings
from hypothesis import strategies as st
from sweeps import how_many

import proton_bench as proton
from proton_bench.formats.registry import read_profile
from proton_bench.model.profile import Profile
from proton_bench.recording.context.metric import add_scope_metrics
from proton_bench.recording.session.session import Session, SessionOptions, open_session

native = pytest.importorskip("proton_bench._native")

# Fields of our own events have some of these names as well.
METRICS = ["bytes", "stream", "open", "correlation", "flops", "m (exc)"]
VALUES = st.integers(-(2**40), 2**40)
RATIOS = st.floats(0, 1e30, allow_subnormal=False)  # sums of negative ones too depend on the order


@dataclass(frozen=True)
class Step:
    """A step of one thread: opens or closes a scope, or launches a kernel.

    Attributes:
        thread: Which of the threads.
        name: Of the scope or kernel; "" closes a scope.
        device: Where the kernel runs, -1 for scopes.
        stream: On which stream.
        duration_ns: How long.
        metrics: Metrics that the program adds.
    """

    thread: int
    name: str
    device: int = -1
    stream: int = 0
    duration_ns: int = 0
    metrics: tuple[tuple[str, Any], ...] = ()


TOLD = st.dictionaries(st.sampled_from(METRICS), VALUES, max_size=2).map(lambda m: m.items())
TOLD |= st.tuples(st.tuples(st.just("ratio"), RATIOS))
TOLD |= st.tuples(st.tuples(st.just("vector"), st.lists(RATIOS, min_size=2, max_size=2)))
STEPS = st.builds(
    Step,
    thread=st.integers(0, 1),
    name=st.sampled_from(["a", "b", "ROOT", "GPU 0", "f.py:3@g", "<i>\x1b", "", "", "k"]),
    metrics=TOLD.map(tuple),
) | st.builds(
    Step,
    thread=st.integers(0, 1),
    name=st.sampled_from(["k", "a", "ncclDevKernel", "é😀"]),
    device=st.integers(0, 2),
    stream=st.sampled_from([0, 7, 2**31]),
    duration_ns=st.sampled_from([0, 1, 999, 50_000]),
    metrics=TOLD.map(tuple),
)


class Program:
    """Two threads that take their steps in turn."""

    def __init__(self) -> None:
        self._threads = [ThreadPoolExecutor(1), ThreadPoolExecutor(1)]
        self._open = [0, 0]

    def run(self, steps: list[Step]) -> None:
        """Do the steps, and close what they leave open."""
        for step in steps:
            if step.device >= 0:
                self._on(step.thread, partial(launch, step))
            elif step.name:
                enter = partial(proton.enter_scope, step.name, metrics=dict(step.metrics))
                self._on(step.thread, enter)
                self._open[step.thread] += 1
            elif self._open[step.thread]:
                self._close(step.thread)
        for thread, depth in enumerate(self._open):
            for _ in range(depth):
                self._close(thread)
        for executor in self._threads:
            executor.shutdown()

    def _close(self, thread: int) -> None:
        self._on(thread, proton.exit_scope)
        self._open[thread] -= 1

    def _on(self, thread: int, work: Callable[[], object]) -> None:
        self._threads[thread].submit(work).result()


def launch(step: Step) -> None:
    """Launch as a hook does that names the kernel and gives its metadata; it runs at once."""
    native.enter_op(step.name)
    add_scope_metrics(dict(step.metrics))
    number = native.emit_launch()
    native.exit_op()
    now_ns = time.monotonic_ns()
    native.emit_kernel(
        number, step.name, now_ns - step.duration_ns, now_ns, "CUDA", step.device, step.stream
    )


def recorded_session(folder: Path) -> Session:
    recording = folder / "none.pbrecord"
    write_recording(recording)
    return open_session(
        SessionOptions(
            name=folder / "run",
            data="trace",
            backend="replay",
            mode=f"replay:file={recording}",
            trace_formats=("chrome_trace", "perfetto"),
        )
    )


def told_by(profile: Profile) -> dict[tuple[object, ...], Any]:
    """Return every value that is not 0 and not of the host's clock, by path, device and metric.

    Metrics that a program adds to a kernel count on all its devices: a tree has them on one.
    """
    found: dict[tuple[object, ...], list[float]] = {}
    for metric, column in profile.columns.items():
        for row, value in enumerate(column.to_list() if metric != "wall (ns)" else ()):
            if value is None:
                continue
            device = profile.device(row) if metric in {"time (ns)", "count"} else None
            key = (profile.path(row), device.index if device else -1, metric)
            values = list(value) if isinstance(value, tuple | list) else [value]
            before = found.get(key, [0] * len(values))
            found[key] = [one + other for one, other in zip(before, values, strict=True)]
    return {key: [rounded(each) for each in values] for key, values in found.items() if any(values)}


def rounded(value: float) -> float:
    """Return the digits that two sums of the same numbers in another order share."""
    return float(f"{value:.9e}")


@settings(max_examples=how_many(25, 8), deadline=None)
@given(st.lists(STEPS, max_size=30))
def test_timelines_hold_every_number_of_the_tree(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as name, ExitStack() as at_end:
        folder = Path(name)
        session = recorded_session(folder)
        at_end.callback(session.finalize, ())
        Program().run(steps)
        session.finalize(("proton", "chrome_trace", "perfetto"))
        tree = read_profile(folder / "run.proton")
        timelines = [read_profile(folder / f"run.{kind}") for kind in ("chrome_trace", "pftrace")]

    for timeline in timelines:
        assert told_by(timeline) == told_by(tree)
        assert timeline.dropped == tree.dropped == {}
        assert not timeline.partial
