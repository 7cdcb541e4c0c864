"""Simulated searches for a slower revision: how often the right one is found, and at what cost.

Nothing is measured: 64 revisions, one of which is 3 % slower, on a machine that is a model. Ours is
`proton_bench.gate.bisect.search`, after a proof of six pairs; plain `git bisect` measures a fixed
number of pairs at each step and calls a revision bad if their mean is beyond half of the effect.

    python -m benchmarks.studies.bisect.simulation --searches 400
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from proton_bench.gate.bisect.history import Candidate, History
from proton_bench.gate.bisect.search import Search, Seen

Find = Callable[["Bench", Sequence[Seen]], "int | None"]

REVISIONS = 64
SLOWER = 0.03
PROOF_PAIRS = 6


@dataclass(frozen=True)
class Machine:
    """A simulated machine; standard deviations are of logarithms.

    Attributes:
        name: What it stands for.
        process: Between processes.
        revision: Between revisions, for changes that have nothing to do with the regression.
        slow: How often a process is slower by a tenth.
        second: What running second costs.
    """

    name: str
    process: float
    revision: float = 0.001
    slow: float = 0.0
    second: float = 0.0


MACHINES = (
    Machine("H200, quiet path (0.1 %)", 0.001),
    Machine("H200, usual path (0.2 %)", 0.002),
    Machine("H200, noisy path (0.3 %)", 0.003),
    Machine("noisy GPU (1 %)", 0.01),
    Machine("0.3 %, running second costs 1 %", 0.003, second=0.01),
    Machine("0.3 %, a tenth of the processes 10 % slower", 0.003, slow=0.1),
    Machine("0.3 %, other changes of 0.5 %", 0.003, revision=0.005),
)


class Bench:
    """Pairs of one simulated search.

    Args:
        machine: The machine.
        seed: Its noise, and which revision is slower.
    """

    def __init__(self, machine: Machine, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.machine = machine
        self.guilty = int(self.rng.integers(REVISIONS))
        self.offsets = self.rng.normal(0.0, machine.revision, REVISIONS)
        self.offsets[-1] = 0.0
        self.pairs = 0
        self.prepared: set[int] = set()

    def pair(self, revision: int, *, base_first: bool) -> float:
        """Return ``ln`` of candidate over good of one pair."""
        self.pairs += 1
        self.prepared.add(revision)
        truth = self.offsets[revision] + math.log1p(SLOWER) * (revision >= self.guilty)
        second = self.machine.second if base_first else -self.machine.second
        return float(truth + second + self._process() - self._process())

    def _process(self) -> float:
        slow = math.log(1.1) * (self.rng.random() < self.machine.slow)
        return float(self.rng.normal(0.0, self.machine.process) + slow)

    def proven(self) -> list[Seen]:
        """Return the pairs of the proof."""
        sides = [n % 2 == 0 for n in range(PROOF_PAIRS)]
        return [Seen(self.pair(REVISIONS - 1, base_first=each), each) for each in sides]


def history() -> History:
    """Return a line of revisions."""
    return History([Candidate(str(n), parents=(n - 1,) if n else ()) for n in range(REVISIONS)])


def ours(bench: Bench, proof: Sequence[Seen]) -> int | None:
    """Return what our search finds, None for a range."""
    search = Search(history(), proof)
    base_first = True
    while (revision := search.next()) is not None:
        search.saw(revision, Seen(bench.pair(revision, base_first=base_first), base_first))
        base_first = not base_first
    found = search.answer()
    return found[0] if len(found) == 1 else None


def plain(pairs: int) -> Find:
    """Return plain `git bisect` with a fixed number of pairs at each step."""

    def find(bench: Bench, proof: Sequence[Seen]) -> int | None:
        limit = np.mean([each.difference for each in proof]) / 2.0
        good, bad = -1, REVISIONS - 1
        while bad - good > 1:
            middle = (good + bad) // 2
            seen = [bench.pair(middle, base_first=n % 2 == 0) for n in range(pairs)]
            if np.mean(seen) > limit:
                bad = middle
            else:
                good = middle
        return bad

    return find


SEARCHES = {
    "ours": ours,
    "plain, 6 pairs": plain(6),
    "plain, 2 pairs": plain(2),
    "plain, 1 pair": plain(1),
}


@dataclass(frozen=True)
class Outcome:
    """Of many searches.

    Attributes:
        right: The slower revision was named.
        wrong: Another one was named.
        open: A range was named.
        pairs: Mean number of pairs, without the proof.
        most: Largest number.
        prepared: Mean number of revisions that ran, without the bad one.
        searches: All searches.
    """

    right: int
    wrong: int
    open: int
    pairs: float
    most: int
    prepared: float
    searches: int


def simulate(machine: Machine, find: Find, count: int) -> Outcome:
    """Return the outcome of seeded searches, the same seeds for every way to search."""
    right = wrong = unknown = 0
    pairs, prepared = [], []
    for seed in range(count):
        bench = Bench(machine, seed)
        proof = bench.proven()
        found = find(bench, proof)
        pairs.append(bench.pairs - len(proof))
        prepared.append(len(bench.prepared - {REVISIONS - 1}))
        right += found == bench.guilty
        unknown += found is None
        wrong += found is not None and found != bench.guilty
    means = float(np.mean(pairs)), float(np.mean(prepared))
    return Outcome(right, wrong, unknown, means[0], max(pairs), means[1], count)


def table(count: int) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| machine | search | right | wrong | range | pairs, mean | most | revisions run |"
    yield "|---|---|---|---|---|---|---|---|"
    for machine in MACHINES:
        for name, find in SEARCHES.items():
            seen = simulate(machine, find, count)
            part = 100.0 / seen.searches
            yield (
                f"| {machine.name} | {name} | {seen.right * part:.1f} % | "
                f"{seen.wrong * part:.1f} % | {seen.open * part:.1f} % | {seen.pairs:.1f} | "
                f"{seen.most} | {seen.prepared:.1f} |"
            )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=int, default=400)
    for line in table(parser.parse_args().searches):
        print(line, flush=True)


if __name__ == "__main__":
    main()
