"""The order of runs: pairs, in each of which but those that warm up chance decides who is first."""

from __future__ import annotations

import random
from collections.abc import Container, Sequence
from dataclasses import dataclass
from enum import StrEnum

# Pairs that have to be irregular: as many as the first look that can fail has.
_FIRST = 6
BASE = "base"
NEW = "new"


class Stage(StrEnum):
    """The purpose of a run."""

    WARM_UP = "warm-up"
    PAIR = "pair"
    ALONE = "alone"


@dataclass(frozen=True, slots=True)
class Slot:
    """One future run in a fresh process.

    Attributes:
        stage: Its stage.
        pair: Number of its pair within the stage, or of the run if there are no pairs.
        arm: Side that runs.
        base_first: Whether the base goes first in this pair.
    """

    stage: Stage
    pair: int
    arm: str
    base_first: bool = True

    @property
    def name(self) -> str:
        """Name of its files, without a suffix."""
        return f"{self.stage}-{self.pair + 1:03d}-{self.arm}"

    @property
    def text(self) -> str:
        """Its description: ``pair 2, base``, or ``2`` of one side alone."""
        number = str(self.pair + 1)
        return number if self.stage is Stage.ALONE else f"{self.stage} {number}, {self.arm}"


def pairs(stage: Stage, count: int, seed: str = "") -> tuple[Slot, ...]:
    """Return the slots of this many pairs.

    Args:
        stage: Their stage.
        count: Number of pairs; the first ones are the same for any number.
        seed: Decides which side runs first in each of them; "" for the base in all.
    """
    slots = []
    for pair, base_first in enumerate(_turns(count, seed)):
        arms = (BASE, NEW) if base_first else (NEW, BASE)
        slots += [Slot(stage, pair, arm, base_first) for arm in arms]
    return tuple(slots)


def _turns(count: int, seed: str) -> list[bool]:
    """Return for each pair whether the base runs first.

    A fixed order such as base, new, new, base can have the period of other work on the machine,
    which then only one side meets. So the first pairs do not repeat one, two or three of them, and
    both orders are among the first four.
    """
    if not seed:
        return [True] * count
    chance = random.Random(seed)
    while True:
        turns = [chance.random() < 0.5 for _ in range(_FIRST)]
        repeats = any(turns[period:] == turns[:-period] for period in (1, 2, 3))
        if not repeats and len(set(turns[:4])) > 1:
            break
    return [*turns, *(chance.random() < 0.5 for _ in range(count - _FIRST))][:count]


def missing(slots: Sequence[Slot], kept: Container[Slot]) -> list[Slot]:
    """Return the slots still to run; half a pair is useless without the other.

    Args:
        slots: All that are to run.
        kept: Those that ran.
    """
    broken = {(slot.stage, slot.pair) for slot in slots if slot not in kept}
    return [
        slot
        for slot in slots
        if slot not in kept or (slot.stage is Stage.PAIR and (slot.stage, slot.pair) in broken)
    ]


def new_alone(count: int) -> tuple[Slot, ...]:
    """Return the slots of this many runs of the new side without the base."""
    return tuple(Slot(Stage.ALONE, number, NEW) for number in range(count))
