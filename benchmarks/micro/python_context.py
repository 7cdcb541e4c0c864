"""Cost of the Python call path of one launch: python benchmarks/micro/python_context.py.

A launch is timed with and without Python context, ours in a native loop through the replay
collector, upstream's through one op of its instrumentation backend, which needs no GPU. Context
costs the difference. Both arms, and two ways of the standard library to read a stack, run in turn
in every round, so that a pair saw the same machine; times are those of the thread on a processor.
Without Triton only the library is compared.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Literal

from proton_bench import _native as native

LAUNCHES = 20_000
OPS = 1_000
STACKS = 50
REPEATS = 3

Arm = Callable[[], float]


def below(depth: int, arm: Arm) -> float:
    """Return what ``arm`` says when it runs ``depth`` frames further down."""
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
        session = native.add_session("x", context, False)
        native.activate_session(session)
        collector = native.ReplayCollector(recording, True)
        collector.start()
        collector.launch(1)
        spent = ns_per_call(lambda: collector.launch(LAUNCHES), 1)
        collector.stop()
        native.remove_session(session)
        return spent / LAUNCHES

    return arm


def launch_two_lines() -> None:
    """Launch from two lines of a function."""
    native.emit_launch()
    native.emit_launch()


def changing_cost(context: Literal["shadow", "python"]) -> Arm:
    """Return an arm: ns per launch of ours when each comes from another line than the last."""

    def arm() -> float:
        session = native.add_session("x", context, False)
        native.activate_session(session)
        launch_two_lines()
        spent = ns_per_call(launch_two_lines, OPS)
        native.remove_session(session)
        return spent / 2

    return arm


def upstream() -> ModuleType | None:
    """Return upstream's native profiler when Triton is installed."""
    try:
        from triton._C.libproton import proton  # noqa: TID251  (what is compared)
    except ImportError:
        return None
    return proton  # type: ignore[no-any-return]


def op_cost(profiler: ModuleType, folder: str, context: str) -> Arm:
    """Return an arm: ns per op of upstream's with that context."""

    def op() -> None:
        scope = profiler.record_scope()
        profiler.enter_op(scope, "op")
        profiler.exit_op(scope, "op")

    def arm() -> float:
        session = profiler.start(f"{folder}/op", context, "tree", "instrumentation", "cuda")
        op()
        spent = ns_per_call(op, OPS)
        profiler.finalize(session, "hatchet")
        return spent

    return arm


def frames_by_hand() -> int:
    """Walk the stack as Python code does it."""
    frame, lines = sys._getframe(), 0
    while frame.f_back is not None:
        frame = frame.f_back
        lines += frame.f_lineno
    return lines


def interval(values: list[float]) -> tuple[float, float]:
    """Return the 95 % interval of the median by order statistics."""
    ordered = sorted(values)
    half = 0.98 * sqrt(len(ordered))
    low, high = int(len(ordered) / 2 - half), int(len(ordered) / 2 + half)
    return ordered[max(low, 0)], ordered[min(high, len(ordered) - 1)]


def show(name: str, costs: list[float], ours: list[float]) -> None:
    """Print the cost of one arm, and ours against it round by round."""
    ratios = [own / cost for own, cost in zip(ours, costs, strict=True)]
    low, high = interval(ratios)
    print(
        f"  {name:<24} {statistics.median(costs):>10.1f} ns   ours / this "
        f"{statistics.median(ratios):.4f} [{low:.4f}, {high:.4f}]"
    )


def measure(depth: int, rounds: int, arms: dict[str, Arm]) -> dict[str, list[float]]:
    """Run all arms in turn and return the cost of each per round, in ns."""
    costs: dict[str, list[float]] = {name: [] for name in arms}
    for _ in range(rounds):
        for name, arm in arms.items():
            costs[name].append(min(below(depth, arm) for _ in range(REPEATS)))
    return costs


def added(costs: dict[str, list[float]], arm: str) -> list[float]:
    """Return what Python context adds to an arm, round by round."""
    pairs = zip(costs[f"{arm}, python"], costs[f"{arm}, shadow"], strict=True)
    return [python - shadow for python, shadow in pairs]


def main() -> None:
    """Print the costs at each depth with the machine they were taken on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--depths", type=int, nargs="+", default=[5, 20, 50])
    options = parser.parse_args()
    print(
        f"{platform.machine()}, {platform.platform()}, Python {platform.python_version()}, "
        f"{native.python_frame_walk} walk, {options.rounds} rounds"
    )
    with TemporaryDirectory() as folder:
        recording = str(Path(folder) / "launches")
        native.write_recording(
            recording, [{"event": "launch", "correlation_id": 1}] * (LAUNCHES + 1)
        )
        arms: dict[str, Arm] = {
            "ours, shadow": launch_cost(recording, "shadow"),
            "ours, python": launch_cost(recording, "python"),
            "line by line, shadow": changing_cost("shadow"),
            "line by line, python": changing_cost("python"),
            "sys._getframe loop": lambda: ns_per_call(frames_by_hand, STACKS),
            "traceback.extract_stack": lambda: ns_per_call(traceback.extract_stack, STACKS),
        }
        if (profiler := upstream()) is not None:
            arms["upstream, shadow"] = op_cost(profiler, folder, "shadow")
            arms["upstream, python"] = op_cost(profiler, folder, "python")
        for depth in options.depths:
            print(f"depth {depth}")
            costs = measure(depth, options.rounds, arms)
            ours = added(costs, "ours")
            show("ours", ours, ours)
            show("ours, another line", added(costs, "line by line"), ours)
            if profiler is not None:
                show("upstream", added(costs, "upstream"), ours)
            for name in ("sys._getframe loop", "traceback.extract_stack"):
                show(name, costs[name], ours)


if __name__ == "__main__":
    main()
