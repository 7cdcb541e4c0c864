"""What a new node of the tree costs, against upstream's: python -m benchmarks.micro.tree_insert.

Every scope has a name that was never seen. The first row is the time that the measured program
waits; the second also holds the end of the session, which writes the tree as `.hatchet`. Times are
those of the thread, and of all threads, on a processor.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory

import proton_bench as proton
from benchmarks.interleaved import print_machine, print_row, ratio, rounds
from benchmarks.upstream import session, upstream

ROUNDS = 15
NODES = 20_000
# Children of one node: a tree with some depth, not one long list.
FAN = 100
CASES = ("enter and leave a new scope", "... and write it as .hatchet")

Scope = Callable[[str], AbstractContextManager[object]]
Seconds = tuple[float, float]

_numbers = itertools.count()


def insert(scope: Scope, names: list[list[str]]) -> float:
    """Return the seconds that entering and leaving scopes with these names takes."""
    begin = time.thread_time()
    for outer, *inner in names:
        with scope(outer):
            _insert_children(scope, inner)
    return time.thread_time() - begin


def _insert_children(scope: Scope, names: list[str]) -> None:
    for name in names:
        with scope(name):
            pass


def new_names() -> list[list[str]]:
    """Return names that no round had before."""
    first = next(_numbers) * NODES
    starts = range(first, first + NODES, FAN)
    return [[f"kernel_{number}" for number in range(start, start + FAN)] for start in starts]


def our_round(folder: Path) -> Seconds:
    """Return the seconds of inserting, and of inserting and writing."""
    names = new_names()
    number = proton.start(str(folder / "ours"), backend="cpu")
    begin = time.process_time()
    inserting = insert(proton.scope, names)
    proton.finalize(number)
    return inserting, time.process_time() - begin


def their_round(folder: Path) -> Seconds:
    """Return the same of upstream."""
    names = new_names()
    with session(folder):
        begin = time.process_time()
        inserting = insert(upstream.scope, names)
    return inserting, time.process_time() - begin


def main() -> None:
    """Print what a node costs until it is recorded, and until it is written."""
    print_machine()
    measured: dict[str, list[Seconds]] = {"ours": [], "theirs": []}

    def keeping(arm: str, measure: Callable[[Path], Seconds]) -> Callable[[], float]:
        def run() -> float:
            measured[arm].append(measure(Path(name)))
            return sum(measured[arm][-1])

        return run

    with TemporaryDirectory() as name:
        rounds(
            {"ours": keeping("ours", our_round), "theirs": keeping("theirs", their_round)}, ROUNDS
        )
    for place, what in enumerate(CASES):
        # The first round warmed up.
        costs = {arm: [pair[place] / NODES for pair in all_[1:]] for arm, all_ in measured.items()}
        each = "  ".join(
            f"{a} {statistics.median(all_) * 1e9:5.0f} ns" for a, all_ in costs.items()
        )
        print_row(what, f"{each}  ratio {ratio(costs['ours'], costs['theirs']):.3f}")


if __name__ == "__main__":
    main()
