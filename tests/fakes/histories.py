"""Histories: experiments with known steps, as points and as saved runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from fakes.gated import Kernel, process
from fakes.outcomes import HOSTILE

from proton_bench.analysis.run import Run
from proton_bench.gate.history.history import Acknowledgement, History, history_of
from proton_bench.gate.history.points import Point, Value
from proton_bench.gate.policy import Policy

HOUR_S, FIRST_S = 3600, 1_700_000_000
MACHINE = (("GPU name", "NVIDIA H200"), ("host", "here"))


def point(number: int, times: Mapping[str, float], *, direction: int = 1, **facts: Any) -> Point:
    """Return the experiment of an hour: times in ns by path."""
    known: dict[str, Any] = {
        "group": "main",
        "source": f"run{number}.proton",
        "time_ns": (FIRST_S + number * HOUR_S) * 1_000_000_000,
        "revision": revision(number),
        "is_dirty": False,
        "machine": MACHINE,
        "tools": {"torch": "2.6"},
        "recording": "",
        "runs": 1,
        "texts": {},
        "values": {
            (tuple(path.split("/")), 0, "median"): Value(
                value=value,
                as_short=value,
                metric="median",
                unit="ns",
                share=0.1,
                direction=direction,
                is_quarantined=False,
            )
            for path, value in times.items()
        },
    }
    return Point(**{**known, **facts})


def revision(number: int) -> str:
    """Return the git revision of an experiment."""
    return f"{number:02x}" * 20


def stepped(
    count: int, *steps: tuple[int, float], noise: float = 0.003, seed: int = 1
) -> np.ndarray:
    """Return natural logarithms that rise by a size at each place."""
    values = np.log(100_000.0) + np.random.default_rng(seed).normal(0.0, noise, count)
    for place, size in steps:
        values[place:] += np.log1p(size)
    return values


def points_of_times(times: Mapping[str, Sequence[float]], **facts: Any) -> list[Point]:
    """Return one experiment for each of the logarithms of times by path."""
    rows = zip(*times.values(), strict=True)
    return [
        point(number, dict(zip(times, np.exp(row).tolist(), strict=True)), **facts)
        for number, row in enumerate(rows)
    ]


def judged(
    points: Sequence[Point], known: Sequence[Acknowledgement] = (), **policy: Any
) -> History:
    """Return the history of points; some of its steps are acknowledged."""
    return history_of(points, Policy(**policy), acknowledged={each.series: each for each in known})


def slower(count: int = 40, **facts: Any) -> list[Point]:
    """Return experiments of two paths; one of them is 5 % slower from number 20 on."""
    times = {"step/a": stepped(count, (20, 0.05)), "step/b": stepped(count, seed=2)}
    return points_of_times(times, **facts)


def hostile() -> History:
    """Return a history with a step whose every text tries to be markup or a command."""
    facts = {
        "source": HOSTILE,
        "revision": HOSTILE,
        "group": HOSTILE,
        "machine": (("GPU name", HOSTILE), ("host", HOSTILE)),
        "tools": {HOSTILE: HOSTILE},
    }
    name = HOSTILE.replace("/", "")
    points = points_of_times({f'step/{name}"onload=': stepped(40, (20, 0.05))}, **facts)
    return replace(judged(points), left_out={HOSTILE: HOSTILE})


def recorded(
    count: int, slower: Mapping[str, tuple[int, float]], *, seed: int = 1, **facts: Any
) -> list[Run]:
    """Return runs of four kernels, hour by hour; those named are slower from a run on."""
    rng = np.random.default_rng(seed)
    runs = []
    for number in range(count):
        kernels = [
            Kernel(
                f"step/{name}",
                time_ns=100_000.0
                * (1.0 + (slower[name][1] if _is_slow(slower, name, number) else 0)),
            )
            for name in ("a", "b", "c", "d")
        ]
        git = {"revision": revision(number), "dirty": False}
        at = FIRST_S + number * HOUR_S
        runs.append(process(kernels, rng, new=False, at=at, git=git, **facts))
    return runs


def _is_slow(slower: Mapping[str, tuple[int, float]], name: str, number: int) -> bool:
    return name in slower and number >= slower[name][0]
