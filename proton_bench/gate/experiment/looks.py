"""When an experiment looks at its runs, and how much each look may err.

Runs are added until every path is decided or none are left to add. Each look at the same runs is
another chance for a false alarm, so that the looks share it (alpha spending; Lan, DeMets 1983,
Biometrika 70:659): half for the first look at which a path can fail, half of the rest for the next,
and all of the rest for the last. The chances add up to 1 however the looks depend on one another.
Separations by states need no shares: `gate.statistics.states`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from proton_bench.gate.judge.result import GateResult
from proton_bench.gate.judge.verdict import Reason
from proton_bench.gate.statistics.power import RECOMMENDED_PAIRS
from proton_bench.support.units import count_text

__all__ = ["FIRST_PAIRS", "Look", "looks"]

# Enough for most paths of unchanged code to be certainly the same.
FIRST_PAIRS = 4
# The noise of a few pairs says how many are needed within about this factor.
_HOPE = 2


@dataclass(frozen=True, slots=True)
class Look:
    """One look.

    Attributes:
        pairs: Pairs so far, or runs of the new side if the base was recorded before.
        part: Share of the false alarms that noise may cause in this look.
        most: Pairs of the last look.
        is_first: Whether no other look came before.
    """

    pairs: int
    part: float
    most: int
    is_first: bool

    def goes_on(self, result: GateResult, say: Callable[[str], None]) -> bool:
        """Return whether further looks may decide more, and say what is undecided until then.

        Args:
            result: The gate at this look.
            say: Shows one line.
        """
        undecided = _undecided(result, self.most)
        if not undecided or self.pairs >= self.most:
            return False
        so_far = count_text(self.pairs, "pair" if result.paired else "run")
        say(f"{undecided} undecided after {so_far}")
        hidden = [note.text for note in result.notes if note.reason is Reason.TOO_NOISY]
        if self.is_first and hidden:
            say(hidden[0])
        return True


def looks(most: int, fewest: int = FIRST_PAIRS) -> tuple[Look, ...]:
    """Return the looks of an experiment: every two pairs, so that both orders occur as often.

    Args:
        most: Pairs of the last look.
        fewest: Pairs of the first look.
    """
    first = min(max(fewest + fewest % 2, FIRST_PAIRS), most)
    counts = [*range(first, most, 2), most]
    left, found = 1.0, []
    for count in counts:
        can_fail = count >= RECOMMENDED_PAIRS
        part = left if count == most or not can_fail else left / 2.0
        left -= part if can_fail else 0.0
        found.append(Look(count, part, most, is_first=count == first))
    return tuple(found)


def _undecided(result: GateResult, most: int) -> str:
    """Return what that many pairs may decide, "" for nothing."""
    if result.canaries.moved:  # by chance, perhaps: clocks of few processes differ
        return "speed of the machine"
    enough = _HOPE * most
    rows = sum(row.is_undecided and 0 < row.pairs_needed <= enough for row in result.rows)
    return count_text(rows, "check") if rows else ""
