"""Rules of other tools on the launches of a study: the same data for all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.studies.gate.machine import Drawn
from benchmarks.studies.gate.rules import OTHER_TOOLS
from benchmarks.studies.gate.study.components import Launches
from benchmarks.studies.gate.study.plan import BASE, SLOWDOWNS, variant_name
from proton_bench.gate.machine.rate import Rate

__all__ = ["Rival", "rivals"]


@dataclass(frozen=True, slots=True)
class Rival:
    """Results of one rule.

    Attributes:
        name: The rule.
        alarms: Gates without a change in which it called a path slower.
        found: Slowed kernels that it found, by slowdown.
    """

    name: str
    alarms: Rate
    found: dict[float, Rate]


def rivals(launches: Launches, pairs: int, slowdowns: Sequence[float] = SLOWDOWNS) -> list[Rival]:
    """Return the rules of other tools; the real judge represents ours."""
    whole = list(_drawn(launches, pairs))
    found = []
    for name, rule in OTHER_TOOLS.items():
        alarms = Rate(sum(bool(rule(each).any()) for each in whole), len(whole))
        hits = {}
        for slowdown in slowdowns:
            slowed = [each for each in whole for each in _slowed(launches, each, slowdown)]
            called = sum(bool(rule(each)[each.slowed].any()) for each in slowed)
            hits[slowdown] = Rate(called, len(slowed))
        found.append(Rival(name, alarms, hits))
    return found


def _drawn(launches: Launches, pairs: int) -> Iterator[Drawn]:
    size = 2 * pairs
    order = np.array([1.0 if pair % 2 == 0 else -1.0 for pair in range(pairs)])
    nothing = np.zeros(len(launches.paths), dtype=np.bool_)
    for begin in range(0, len(launches.times) - size + 1, size):
        part = launches.times[begin : begin + size]
        first, second = part[0::2], part[1::2]
        swap = (order > 0)[:, None, None]
        base, new = np.where(swap, first, second), np.where(swap, second, first)
        yield Drawn(base, new, order, nothing)


def _slowed(launches: Launches, drawn: Drawn, slowdown: float) -> Iterator[Drawn]:
    """Yield the gate once for each kernel, which is slowed on the new side."""
    places = {path: at for at, path in enumerate(launches.paths)}
    slow_name = variant_name(slowdown)
    for work in sorted({path[0] for path in launches.paths}):
        keep = np.ones(len(launches.paths), dtype=np.bool_)
        slowed, new = np.zeros_like(keep), drawn.new.copy()
        for path, at in places.items():
            slow = places.get((work, slow_name, *path[2:]))
            if path[:2] == (work, BASE) and slow is not None:
                new[:, at], slowed[at], keep[slow] = drawn.new[:, slow], True, False
        yield Drawn(drawn.base[:, keep], new[:, keep], drawn.order, slowed[keep])
