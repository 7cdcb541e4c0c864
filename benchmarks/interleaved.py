"""Measures two or more things in turn, so that a disturbance of the machine hits all of them.

Each round measures every arm once, in an order that alternates. The result is the ratio (or
difference) within a round: its median over the rounds with a 95 % interval from resampling.
"""

from __future__ import annotations

import platform
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

RESAMPLES = 2000
# For the backend `replay`: the version, no texts and no events.
EMPTY_RECORDING = b"PBRECORD" + bytes([1]).ljust(16, b"\0")
T = TypeVar("T")
Arm = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Interval:
    """A median and its 95 % interval."""

    middle: float
    low: float
    high: float

    def __format__(self, spec: str) -> str:
        return f"{self.middle:{spec}} [{self.low:{spec}}, {self.high:{spec}}]"


def rounds(arms: Mapping[str, Arm], count: int) -> dict[str, list[float]]:
    """Call every arm once per round and return the costs by name.

    Args:
        arms: Functions that measure once and return a cost, in one unit.
        count: Number of rounds; one more, not reported, warms up.
    """
    costs: dict[str, list[float]] = {name: [] for name in arms}
    order = list(arms)
    for number in range(count + 1):
        for name in order:
            cost = arms[name]()
            if number:
                costs[name].append(cost)
        order.reverse()
    return costs


def timed(work: Callable[[], object], calls: int = 1, clock: Arm = time.perf_counter) -> Arm:
    """Return an arm: seconds per call of ``work``, called ``calls`` times in a row.

    Args:
        work: What to measure.
        calls: How often one round calls it.
        clock: ``time.thread_time`` excludes the effect of a busy machine.
    """

    def arm() -> float:
        begin = clock()
        for _ in range(calls):
            work()
        return (clock() - begin) / calls

    return arm


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """Return the ratio within a round."""
    return median([one / other for one, other in zip(ours, theirs, strict=True)])


def difference(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """Return the difference within a round."""
    return median([one - other for one, other in zip(ours, theirs, strict=True)])


def added_ratio(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """Return the ratio of the medians over the rounds, for costs that may be near zero."""

    def of(places: Sequence[int]) -> float:
        return statistics.median(ours[place] for place in places) / statistics.median(
            theirs[place] for place in places
        )

    return _resampled(range(len(ours)), of)


def median(values: Sequence[float]) -> Interval:
    """Return the median with its interval; the same values give the same interval."""
    return _resampled(values, statistics.median)


def _resampled(values: Sequence[T], figure: Callable[[Sequence[T]], float]) -> Interval:
    source = random.Random(0)
    figures = sorted(figure(source.choices(values, k=len(values))) for _ in range(RESAMPLES))
    low, high = figures[round(0.025 * RESAMPLES)], figures[round(0.975 * RESAMPLES) - 1]
    return Interval(figure(values), low, high)


def print_machine() -> None:
    """Print the machine and versions."""
    print(f"{platform.machine()}, {platform.platform()}, Python {platform.python_version()}")


def print_row(what: str, figures: str, bar: str = "") -> None:
    """Print one result and its bar, if any."""
    print(f"{what:<44} {figures}{f'   bar {bar}' if bar else ''}")
