"""What the cpu backend adds to one torch operator: python -m benchmarks.micro.operator.

A small operator is called in a loop: bare, recorded by the `cpu` backend below a scope, with its
shapes, seen by the backend but left out, and under torch.profiler. Times are those of the thread on
a processor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from tempfile import TemporaryDirectory
from time import thread_time

import torch
from torch.profiler import ProfilerActivity, profile

import proton_bench as proton
import proton_bench._native as native
from benchmarks.interleaved import Arm, added_ratio, median, print_machine, print_row, rounds

ROUNDS = 201
CALLS = 1000


@contextmanager
def recorded(folder: str, context: str = "shadow") -> Iterator[None]:
    """Record with the cpu backend."""
    number = proton.start(f"{folder}/profile", backend="cpu", context=context)
    with proton.scope("scope"):
        yield
    proton.finalize(number)


@contextmanager
def left_out(folder: str) -> Iterator[None]:
    """Do the same and record no operator, as for those below the depth limit."""
    with recorded(folder):
        native.mute_ops()
        yield
        native.unmute_ops()


def measured(around: Callable[[], AbstractContextManager[object]]) -> Arm:
    """Return an arm: seconds per call, once caches are filled."""
    x = torch.ones(4)

    def calls() -> float:
        begin = thread_time()
        for _ in range(CALLS):
            torch.neg(x)
        return (thread_time() - begin) / CALLS

    def arm() -> float:
        with around():
            calls()
            return calls()

    return arm


def main() -> None:
    """Print what is added per operator."""
    print_machine()
    print(f"torch {torch.__version__}")
    torch.set_num_threads(1)
    with TemporaryDirectory() as folder:
        arms = {
            "bare": measured(nullcontext),
            "theirs": measured(lambda: profile(activities=[ProfilerActivity.CPU])),
            "their shapes": measured(
                lambda: profile(activities=[ProfilerActivity.CPU], record_shapes=True)
            ),
            "ours": measured(lambda: recorded(folder)),
            "our shapes": measured(lambda: recorded(folder, "shapes")),
            "left out": measured(lambda: left_out(folder)),
        }
        costs = rounds(arms, ROUNDS)
    added = {
        name: [one - base for one, base in zip(each, costs["bare"], strict=True)]
        for name, each in costs.items()
    }
    for name, what in (
        ("theirs", "torch.profiler adds"),
        ("their shapes", "torch.profiler adds, with shapes"),
        ("ours", "the cpu backend adds, recorded"),
        ("our shapes", "the cpu backend adds, with shapes"),
        ("left out", "the cpu backend adds, left out"),
    ):
        print_row(what, f"{median([each * 1e9 for each in added[name]]):.0f} ns")
    print_row("recorded, ours over theirs", f"{added_ratio(added['ours'], added['theirs']):.3f}")
    print_row(
        "left out, ours over theirs", f"{added_ratio(added['left out'], added['theirs']):.3f}"
    )


if __name__ == "__main__":
    main()
