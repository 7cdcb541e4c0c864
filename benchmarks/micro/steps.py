"""What finding the steps of a program costs: python -m benchmarks.micro.steps [eager tiny graph].

Sessions with and without it record the same work in turn, in one process: scopes around an
operator each, training steps of twenty layers, and, on a GPU, launches of a graph. The work runs
on the first GPU where there is one. Times are elapsed ones, with the wait for the GPU. Then the
same work outside of recording windows, before the first and after one, against no session at all.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Mapping

import torch

import proton_bench as proton
from benchmarks.interleaved import median, print_machine, print_row, ratio, rounds
from proton_bench.recording.session.options import CapturePlan, SessionOptions
from proton_bench.recording.session.recording import open_session

ROUNDS = 15
BAR = "1.005"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CALLS = {"tiny": 20_000, "eager": 200, "graph": 10_000}

Work = Callable[[], object]


def work_of(name: str) -> Work:
    """Return one call of the work with that name."""
    if name == "eager":
        layers = [torch.nn.Linear(256, 256, device=DEVICE) for _ in range(20)]
        model, batch = torch.nn.Sequential(*layers), torch.randn(32, 256, device=DEVICE)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

        def train() -> None:
            model(batch).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

        return train
    values = torch.zeros(256, 256, device=DEVICE)
    if name == "tiny":

        def add() -> None:
            with proton.scope("step"):
                values.add_(1)

        return add
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.stream(stream):
        values @ values
    with torch.cuda.graph(graph):
        for _ in range(4):
            values @ values
    return graph.replay


def recorded_us(work: Work, calls: int, *, follows: bool) -> float:
    """Return the mean time of a call that is recorded."""
    CapturePlan.follows_steps = property(lambda _plan: follows)  # type: ignore[assignment]
    session = open_session(SessionOptions(name="steps", context="auto", samples_host=True))
    try:
        for _ in range(calls // 10):
            work()
        return mean_us(work, calls)
    finally:
        session.finalize(())


def resting_us(work: Work, calls: int, windows: int | None) -> float:
    """Return the mean time of a call after so many windows of a session; None: without one."""
    schedule = proton.schedule(wait=1, warmup=0, active=1, repeat=windows or 1)
    options = {"context": "auto", "shows": False, "schedule": schedule}
    with contextlib.nullcontext() if windows is None else proton.profiled(**options):
        for _ in range(2 * (windows or 0)):
            proton.step()
            for _ in range(calls // 10):
                work()
        return mean_us(work, calls)


def mean_us(work: Work, calls: int) -> float:
    """Return the mean time of a call."""
    begin = _now_ns()
    for _ in range(calls):
        work()
    return (_now_ns() - begin) / calls / 1e3


def _now_ns() -> int:
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter_ns()


def main(names: list[str]) -> None:
    """Print a row for each work."""
    print_machine()
    for name in names or [name for name in CALLS if name != "graph" or DEVICE == "cuda"]:
        work = work_of(name)
        arms: Mapping[str, Callable[[], float]] = {
            "with": lambda work=work, name=name: recorded_us(work, CALLS[name], follows=True),
            "without": lambda work=work, name=name: recorded_us(work, CALLS[name], follows=False),
        }
        found = rounds(arms, ROUNDS)
        costs = " and ".join(f"{median(values):.3f}" for values in found.values())
        change = ratio(found["with"], found["without"])
        print_row(f"{name}: us with and without", f"{costs}, {change:.4f}", BAR)
        resting = {
            f"{count}": lambda work=work, name=name, count=count: resting_us(
                work, CALLS[name], count
            )
            for count in (None, 0, 1)
        }
        found = rounds(resting, ROUNDS)
        changes = [ratio(found[count], found["None"]) for count in ("0", "1")]
        text = " and ".join(f"{change:.4f}" for change in changes)
        print_row(f"{name}: before and after a window, to none", text, BAR)


if __name__ == "__main__":
    main(sys.argv[1:])
