"""The order of runs: pairs in the order ABBA."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["BASE", "NEW", "Slot", "Stage", "in_turn", "missing", "pairs"]

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


def pairs(stage: Stage, count: int) -> tuple[Slot, ...]:
    """Return the slots of this many pairs: base, new, new, base, base, ..."""
    slots = []
    for pair in range(count):
        base_first = pair % 2 == 0
        arms = (BASE, NEW) if base_first else (NEW, BASE)
        slots += [Slot(stage, pair, arm, base_first) for arm in arms]
    return tuple(slots)


def missing(slots: Sequence[Slot], kept: Container[Slot]) -> list[Slot]:
    """Return the slots still to run; half a pair is useless without the other.

    Args:
        slots: All of a stage.
        kept: Those that ran.
    """
    broken = {(slot.stage, slot.pair) for slot in slots if slot not in kept}
    return [
        slot
        for slot in slots
        if slot not in kept or (slot.stage is Stage.PAIR and (slot.stage, slot.pair) in broken)
    ]


def in_turn(stage: Stage, arm: str, count: int) -> tuple[Slot, ...]:
    """Return the slots of this many runs of one side."""
    return tuple(Slot(stage, number, arm) for number in range(count))
