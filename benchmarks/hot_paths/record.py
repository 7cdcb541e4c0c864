"""Time this project's hot paths in one process and write them as one run for the gate.

    python benchmarks/hot_paths/record.py OUT.proton

The profiler is the one that the interpreter has installed; this file and its imports from the tests
are the same for all versions. A path that a version lacks is left out. Prints where the profiler
was found.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import proton_bench
from proton_bench import finalize, scope, start
from proton_bench.formats.registry import read_profile, write_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.profile import Profile

_ROUNDS = 200
_WARM_UP = 5
_NODES = 20_000
_ROOT = Path(__file__).resolve().parents[2]

# Calls of one round, and the function that makes them.
Round = tuple[int, Callable[[], object]]


@contextmanager
def scopes(folder: Path) -> Iterator[Round]:
    """Enter and leave a scope of a session."""
    calls = 2000
    session = start(str(folder / "scopes"), backend="cpu")

    def run() -> None:
        for _ in range(calls):
            with scope("scope"):
                pass

    yield calls, run
    finalize(session)


@contextmanager
def metrics(folder: Path) -> Iterator[Round]:
    """Enter and leave a scope that adds a number."""
    calls = 1000
    session = start(str(folder / "metrics"), backend="cpu")

    def run() -> None:
        for _ in range(calls):
            with scope("scope", {"flops": 1.0}):
                pass

    yield calls, run
    finalize(session)


@contextmanager
def launches(folder: Path) -> Iterator[Round]:
    """Launch on the double of libcupti, whose own cost is negligible."""
    sys.path.append(str(_ROOT / "tests"))
    from fakes.doubles import Cupti

    calls = 10_000
    gpu = Cupti()
    session = start(str(folder / "launches"), backend="cupti")

    def run() -> None:
        gpu.bench(calls)

    yield calls, run
    gpu.drain()
    finalize(session)


@contextmanager
def loading(folder: Path) -> Iterator[Round]:
    """Read a profile of twenty thousand rows."""
    builder = ProfileBuilder()
    above = 0
    for number in range(_NODES):
        row = builder.add(above, f"node{number % 997}", metrics={"time (ns)": number, "count": 1})
        above = row if number % 10 else 0
    file = folder / "loaded.proton"
    write_profile(builder.build(), file)
    yield 1, lambda: read_profile(file)


@contextmanager
def summing(folder: Path) -> Iterator[Round]:
    """Sum a metric of it over all subtrees."""
    with loading(folder):
        profile = read_profile(folder / "loaded.proton")
        yield 20, lambda: [profile.inclusive("time (ns)") for _ in range(20)]


def measured(name: str, folder: Path, rounds: int = _ROUNDS) -> list[float]:
    """Return the thread's ns per call for each round; empty if the version lacks it."""
    try:
        with _PATHS[name](folder) as (calls, run):
            times = [_timed(run) / calls for _ in range(_WARM_UP + rounds)]
    except (AttributeError, ImportError, KeyError, TypeError) as error:
        sys.stderr.write(f"hot path {name!r} is left out: {type(error).__name__}: {error}\n")
        return []
    return times[_WARM_UP:]


def _timed(run: Callable[[], object]) -> int:
    begin = time.thread_time_ns()
    run()
    return time.thread_time_ns() - begin


_PATHS = {
    "scope": scopes,
    "scope with a metric": metrics,
    "launch on the double": launches,
    "load a profile": loading,
    "sum over subtrees": summing,
}


def main(out: str, rounds: int = _ROUNDS) -> None:
    """Measure everything and write it."""
    began = time.time_ns()
    builder = ProfileBuilder()
    top = builder.add(0, "hot paths", FrameKind.SCOPE)
    with tempfile.TemporaryDirectory() as folder:
        for name in _PATHS:
            times = measured(name, Path(folder), rounds)
            if times:
                counted = {"time (ns)": sum(times), "count": len(times)}
                row = builder.add(top, name, FrameKind.OP, metrics=counted)
                builder.set_distribution(row, "time (ns)", Distribution.from_samples(times))
    write_profile(_with_facts(builder, began), Path(out))
    print(proton_bench.__file__)


def _with_facts(builder: ProfileBuilder, began: int) -> Profile:
    machine = os.uname()
    return builder.build(
        provenance={
            "host": machine.nodename,
            "system": f"{machine.sysname} {machine.release} {machine.machine}",
            "python": ".".join(map(str, sys.version_info[:3])),
            "start_time_ns": began,
            "end_time_ns": time.time_ns(),
        }
    )


if __name__ == "__main__":
    main(sys.argv[1])
