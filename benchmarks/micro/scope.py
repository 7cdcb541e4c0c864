"""What a scope costs, against upstream's: python -m benchmarks.micro.scope.

Both profilers record in this one process. The figures hold a call of a Python function (some 30 ns)
on both sides. With the backend `replay` a scope does what upstream's does; with `cpu` it also reads
the clock twice, for `wall (ns)`. Times are those of the thread on a processor.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import proton_bench as proton
from benchmarks.interleaved import EMPTY_RECORDING, print_machine, print_row, ratio, rounds, timed
from benchmarks.upstream import library, session, upstream

ROUNDS = 201
CALLS = 1000
BAR = "0.3"
DEPTH = 8


def ours() -> None:
    """Enter and leave one scope."""
    with proton.scope("scope"):
        pass


def theirs() -> None:
    """Enter and leave one scope of upstream."""
    with upstream.scope("scope"):
        pass


def their_library() -> None:
    """Do the same without upstream's Python class."""
    number = library.record_scope()
    library.enter_scope(number, "scope")
    library.exit_scope(number, "scope")


def our_metric() -> None:
    """Enter and leave one scope that adds a number."""
    with proton.scope("scope", {"flops": 1.0}):
        pass


def their_metric() -> None:
    """Do the same with upstream's functions; its Python class would start a GPU driver."""
    number = library.record_scope()
    library.enter_scope(number, "scope")
    library.add_metrics(number, {"flops": 1.0})
    library.exit_scope(number, "scope")


def compare(
    what: str, one: Callable[[], None], other: Callable[[], None], *, bar: str = ""
) -> None:
    """Measure two functions in turn and print a row."""
    arms = {"ours": one, "theirs": other}
    costs = rounds({arm: timed(arms[arm], CALLS, time.thread_time) for arm in arms}, ROUNDS)
    each = "  ".join(
        f"{arm} {statistics.median(all_) * 1e9:5.0f} ns" for arm, all_ in costs.items()
    )
    print_row(what, f"{each}  ratio {ratio(costs['ours'], costs['theirs']):.3f}", bar)


def main() -> None:
    """Print a row per case."""
    print_machine()
    compare("scope, nothing records", ours, theirs)
    with TemporaryDirectory() as name, session(Path(name)):
        Path(name, "empty").write_bytes(EMPTY_RECORDING)
        mode = f"replay:file={name}/empty"
        number = proton.start(f"{name}/replay", backend="replay", mode=mode)
        compare("scope, a session records", ours, theirs, bar=BAR)
        proton.finalize(number)
        number = proton.start(f"{name}/cpu", backend="cpu")
        compare("scope with its time on the clock", ours, theirs, bar=BAR)
        compare("... against upstream's C functions alone", ours, their_library)
        compare("scope with a metric, C functions alone", our_metric, their_metric)
        with contextlib.ExitStack() as stack:
            for level in range(DEPTH):
                stack.enter_context(proton.scope(f"level {level}"))
                stack.enter_context(upstream.scope(f"level {level}"))
            compare(f"scope below {DEPTH} others", ours, theirs, bar=BAR)
        proton.finalize(number)


if __name__ == "__main__":
    main()
