"""What the cpu backend adds to a training step: python -m benchmarks.overhead.transformer_cpu.

One process trains the transformer of `examples/` bare, under torch.profiler and under the `cpu`
backend, in turn. Both profilers record operators of the CPU. Theirs keeps events and writes no
file; ours makes its tree meanwhile, on a thread whose work is part of the time on the processor.
What comes after the last step (their table of averages, our file) is measured apart.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch.profiler import ProfilerActivity, profile

import proton_bench as proton
from benchmarks.interleaved import difference, median, print_machine, print_row, ratio, rounds

sys.path.append(str(Path(__file__).parents[2] / "examples"))

from transformer import SIZES, Trainer

BAR = "0.6"
WARM_UP = 5
STEPS = 10  # in a row, after one that is not measured
Seconds = list[float]


@dataclass(slots=True)
class Costs:
    """Seconds that one kind of run took, one number per round."""

    clock: Seconds = field(default_factory=list)
    processor: Seconds = field(default_factory=list)
    end: Seconds = field(default_factory=list)


@contextmanager
def bare(_costs: Costs) -> Iterator[None]:
    """Record nothing."""
    yield


@contextmanager
def theirs(costs: Costs) -> Iterator[None]:
    """Record operators with torch.profiler."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        yield
        begin = time.perf_counter()
    profiler.key_averages()
    costs.end.append(time.perf_counter() - begin)


@contextmanager
def ours(costs: Costs) -> Iterator[None]:
    """Record operators and scopes with the cpu backend."""
    with TemporaryDirectory() as folder:
        number = proton.start(f"{folder}/profile", backend="cpu")
        yield
        begin = time.perf_counter()
        proton.finalize(number)
        costs.end.append(time.perf_counter() - begin)


Profiler = Callable[[Costs], AbstractContextManager[None]]


def measured(work: Callable[[], object], profiler: Profiler, costs: Costs) -> Callable[[], float]:
    """Return an arm: it trains with the profiler and adds what a step took to the costs."""

    def arm() -> float:
        gc.collect()
        with profiler(costs):
            work()  # the first one fills the profiler's tables
            clock, processor = time.perf_counter(), time.process_time()
            for _ in range(STEPS):
                work()
            costs.processor.append((time.process_time() - processor) / STEPS)
            costs.clock.append((time.perf_counter() - clock) / STEPS)
        return costs.clock[-1]

    return arm


def print_added(what: str, each: dict[str, Seconds]) -> None:
    """Print what the profilers add to a step, and how that compares."""
    micro = {name: [cost * 1e6 for cost in costs] for name, costs in each.items()}
    print_row(f"{what}: bare", f"{median(micro['bare']):.0f} us")
    for name, who in (("theirs", "torch.profiler"), ("ours", "the cpu backend")):
        print_row(f"{what}: {who} adds", f"{difference(micro[name], micro['bare']):.0f} us")
    added = {
        name: [one - base for one, base in zip(each[name], each["bare"], strict=True)]
        for name in ("theirs", "ours")
    }
    print_row(f"{what}: ours over theirs", f"{ratio(added['ours'], added['theirs']):.3f}", BAR)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what each profiler adds to a step, and the ratio."""
    parser = argparse.ArgumentParser(description="Added time of profilers on a training step.")
    parser.add_argument("--pairs", type=int, default=60, help="rounds")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    trainer = Trainer(SIZES["small"], torch.device("cpu"))
    for _ in range(WARM_UP):
        trainer.step()
    costs = {"bare": Costs(), "theirs": Costs(), "ours": Costs()}
    profilers: dict[str, Profiler] = {"bare": bare, "theirs": theirs, "ours": ours}
    arms = {name: measured(trainer.step, profilers[name], costs[name]) for name in costs}
    rounds(arms, options.pairs)
    print_machine()
    print(f"torch {torch.__version__}, {options.threads} thread(s), {options.pairs} rounds")
    # The first round warms up.
    print_added("processor", {name: each.processor[1:] for name, each in costs.items()})
    print_added("clock", {name: each.clock[1:] for name, each in costs.items()})
    for name, what in (
        ("theirs", "end of torch.profiler, with averages"),
        ("ours", "our finalize"),
    ):
        print_row(what, f"{median([end * 1e3 for end in costs[name].end[1:]]):.1f} ms")


if __name__ == "__main__":
    main()
