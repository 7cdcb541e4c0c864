"""What the Python call path of a launch costs: python -m benchmarks.micro.python_context.

A launch is timed with and without Python context, ours in a native loop through the replay
collector, upstream's through one op of its instrumentation backend, which needs no GPU. Context
costs the difference. Two ways of the standard library to read a stack run too. Times are
those of the thread on a processor.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from benchmarks.interleaved import median, print_machine, print_row, ratio, rounds
from benchmarks.upstream import library
from proton_bench import _native as native

ROUNDS = 31
DEPTHS = (5, 20, 50)
LAUNCHES = 20_000
OPS = 1_000
STACKS = 50
REPEATS = 3
BAR = "0.1"

Arm = Callable[[], float]


def below(depth: int, arm: Arm) -> float:
    """Return the result of ``arm``, called ``depth`` frames deeper."""
    return below(depth - 1, arm) if depth else arm()


def ns_per_call(statement: Callable[[], object], calls: int) -> float:
    """Return the mean cost of a call in ns."""
    begin = time.thread_time_ns()
    for _ in range(calls):
        statement()
    return (time.thread_time_ns() - begin) / calls


def launch_cost(recording: str, context: Literal["shadow", "python"]) -> Arm:
    """Return an arm: ns per launch of ours with that context, at an unchanged stack."""

    def arm() -> float:
        session = native.Session(context, False)
        session.activate()
        collector = native.ReplayCollector(recording, True)
        collector.start()
        collector.launch(1)
        spent = ns_per_call(lambda: collector.launch(LAUNCHES), 1)
        collector.stop()
        session.remove()
        return spent / LAUNCHES

    return arm


def launch_two_lines() -> None:
    """Launch from two lines of a function."""
    native.emit_launch()
    native.emit_launch()


def changing_cost(context: Literal["shadow", "python"]) -> Arm:
    """Return an arm: ns per launch of ours when each comes from another line than the last."""

    def arm() -> float:
        session = native.Session(context, False)
        session.activate()
        launch_two_lines()
        spent = ns_per_call(launch_two_lines, OPS)
        session.remove()
        return spent / 2

    return arm


def op_cost(folder: str, context: str) -> Arm:
    """Return an arm: ns per op of upstream's with that context."""

    def op() -> None:
        scope = library.record_scope()
        library.enter_op(scope, "op")
        library.exit_op(scope, "op")

    def arm() -> float:
        session = library.start(f"{folder}/op", context, "tree", "instrumentation", "cuda")
        op()
        spent = ns_per_call(op, OPS)
        library.finalize(session, "hatchet")
        return spent

    return arm


def frames_by_hand() -> int:
    """Walk the stack as Python code does it."""
    frame, lines = sys._getframe(), 0
    while frame.f_back is not None:
        frame = frame.f_back
        lines += frame.f_lineno
    return lines


def least_below(depth: int, arm: Arm) -> Arm:
    """Return an arm: the least of some measurements, ``depth`` frames deeper."""
    return lambda: min(below(depth, arm) for _ in range(REPEATS))


def added(costs: dict[str, list[float]], arm: str) -> list[float]:
    """Return what Python context adds to an arm, round by round."""
    pairs = zip(costs[f"{arm}, python"], costs[f"{arm}, shadow"], strict=True)
    return [python - shadow for python, shadow in pairs]


def show(name: str, costs: list[float], ours: list[float], *, bar: str = "") -> None:
    """Print the cost of one arm, and ours against it."""
    print_row(f"  {name}", f"{median(costs):.0f} ns  ours / this {ratio(ours, costs):.4f}", bar)


def main() -> None:
    """Print the costs at each depth."""
    from fakes.recordings import write_recording

    print_machine()
    print(f"frames are read by the {native.python_frame_walk} walk")
    with TemporaryDirectory() as folder:
        recording = str(Path(folder) / "launches")
        write_recording(recording, [{"event": "launch", "correlation_id": 1}] * (LAUNCHES + 1))
        arms: dict[str, Arm] = {
            "ours, shadow": launch_cost(recording, "shadow"),
            "ours, python": launch_cost(recording, "python"),
            "line by line, shadow": changing_cost("shadow"),
            "line by line, python": changing_cost("python"),
            "sys._getframe loop": lambda: ns_per_call(frames_by_hand, STACKS),
            "traceback.extract_stack": lambda: ns_per_call(traceback.extract_stack, STACKS),
            "upstream, shadow": op_cost(folder, "shadow"),
            "upstream, python": op_cost(folder, "python"),
        }
        for depth in DEPTHS:
            print(f"depth {depth}")
            costs = rounds({name: least_below(depth, arm) for name, arm in arms.items()}, ROUNDS)
            ours = added(costs, "ours")
            show("ours", ours, ours)
            show("ours, each launch from another line", added(costs, "line by line"), ours)
            show("upstream", added(costs, "upstream"), ours, bar=BAR)
            for name in ("sys._getframe loop", "traceback.extract_stack"):
                show(name, costs[name], ours)


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[2] / "tests"))
    main()
