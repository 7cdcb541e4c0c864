"""What every process of a study runs: kernels, each as it is and slowed down by known parts."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["BASE", "CANARY", "FLUSH", "SLOWDOWNS", "Amount", "Plan", "Step", "Work", "variant_name"]

SLOWDOWNS = (0.01, 0.02, 0.03, 0.05, 0.10)
BASE = "base"
# Scopes that are not paths of the study; `proton_bench.gate.machine.canary_shift` has the first.
CANARY = "<canary>"
FLUSH = "<flush>"


@dataclass(frozen=True, slots=True)
class Work:
    """One kernel, or one operator.

    Attributes:
        name: Its scope.
        steps: Iterations of its loop; 1 % more time is 1 % more of them, at least one.
        launch: Runs it with so many iterations more.
        cold: Whether the cache of the device is emptied before each launch.
    """

    name: str
    steps: int
    launch: Callable[[int], None]
    cold: bool = False

    def extra(self, slowdown: float) -> int:
        """Return the iterations to add."""
        return max(1, round(self.steps * slowdown)) if slowdown else 0


@dataclass(frozen=True, slots=True)
class Step:
    """A block of launches of one path.

    Attributes:
        work: Name of the work.
        variant: `BASE` or what `variant_name` says of a slowdown.
        slowdown: As a part.
    """

    work: str
    variant: str
    slowdown: float


@dataclass(frozen=True, slots=True)
class Amount:
    """How much a process does.

    Attributes:
        rounds: How often the order is gone through.
        launches: Of each path in a round; 64 in all are the most that a profile keeps one by one.
        canaries: Launches of the canary in a round.
    """

    rounds: int = 4
    launches: int = 15
    canaries: int = 5


@dataclass(frozen=True, slots=True)
class Plan:
    """What one process is to do.

    Attributes:
        backend: Backend of the session.
        kind: ``cuda``, ``interpreter`` (the same kernels, tiny, without a GPU) or ``operators``.
        seed: Of the study.
        number: Which process it is, from 0.
        tiny: Whether sizes are so small that figures mean nothing.
    """

    backend: str
    kind: str
    seed: int
    number: int
    tiny: bool = False

    @property
    def amount(self) -> Amount:
        """How much there is to do."""
        if self.tiny:
            return Amount(rounds=1, launches=2, canaries=1)
        return Amount(rounds=2) if self.kind == "operators" else Amount()

    def order(self, works: list[Work]) -> list[Step]:
        """Return all paths in the order of this process, another one in each."""
        steps = [
            Step(work.name, variant_name(slowdown), slowdown)
            for work in works
            for slowdown in (0.0, *SLOWDOWNS)
        ]
        random.Random(f"{self.seed}/{self.number}").shuffle(steps)
        return steps


def variant_name(slowdown: float) -> str:
    """Return the scope of a slowdown, such as ``+5%``."""
    return f"+{slowdown:.0%}" if slowdown else BASE
