"""When an experiment looks at its runs, and how much each look may err.

Runs are added until every path is decided or none are left to add. Each look at the same runs is
another chance for a false alarm, so that the looks share it (alpha spending; Lan, DeMets 1983,
Biometrika 70:659): each has as large a part as it has pairs that no earlier one could judge (the
use function of Kim, DeMets 1987, Biometrika 74:149, with power 1). The last of many looks, where
noise is least, keeps a part that finds something. The parts add up to 1 however the looks depend
on one another. Separations by states need no shares: `gate.statistics.decision`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from proton_bench.gate.statistics.decision import RECOMMENDED_PAIRS
from proton_bench.gate.verdict.result import (
    GateResult,
    GateRow,
    Reason,
    SuiteVerdict,
    Verdict,
    sum_up,
)
from proton_bench.support.units import count_text

__all__ = ["HOPE", "MOST_PAIRS", "Look", "looks"]

# Enough for most paths of unchanged code to be certainly the same.
_FIRST_PAIRS = 4
# Of an experiment of pairs for which the user names no other limit: a busy machine needs more than
# ten, and unchanged code on a quiet one ends after four.
MOST_PAIRS = 20
# The noise of a few pairs says how many are needed within about this factor. Trying is worth it for
# a path that seems to have changed, and for those that alone keep the gate from passing.
HOPE = 2
# Clocks of fewer processes differ by chance.
_SURE_OF_CANARIES = 10


@dataclass(frozen=True, slots=True)
class Look:
    """One look.

    Attributes:
        pairs: Pairs so far, or runs of the new side if the base was recorded before.
        part: Share of the false alarms that noise may cause in this look.
        most: Pairs of the last look.
        is_first: Whether no other look came before.
        is_asked: Whether the user named the number of the last one: then only a gate with nothing
            undecided ends before.
    """

    pairs: int
    part: float
    most: int
    is_first: bool
    is_asked: bool = False

    def goes_on(self, result: GateResult, say: Callable[[str], None]) -> bool:
        """Return whether further looks may decide more, and say what is undecided until then.

        Args:
            result: The gate at this look.
            say: Shows one line.
        """
        undecided = self._undecided(result)
        if not undecided or self.pairs >= self.most:
            return False
        so_far = count_text(self.pairs, "pair" if result.paired else "run")
        say(f"{undecided} undecided after {so_far}")
        hidden = [note.text for note in result.notes if note.reason is Reason.TOO_NOISY]
        if self.is_first and hidden:
            say(hidden[0])
        return True

    def _undecided(self, result: GateResult) -> str:
        """Return what further looks may decide, "" for nothing."""
        if self.is_asked:
            rows = sum(row.is_undecided for row in result.rows)
            is_open = result.verdict is SuiteVerdict.INCONCLUSIVE
            return count_text(rows, "check") if rows else "gate" if is_open else ""
        if not result.canaries.moved:
            return _undecided_rows(result, self.most)
        return "speed of the machine" if self.pairs < _SURE_OF_CANARIES else ""


def looks(most: int, fewest: int = _FIRST_PAIRS, *, is_asked: bool = False) -> tuple[Look, ...]:
    """Return the looks of an experiment, two pairs apart.

    Args:
        most: Pairs of the last look.
        fewest: Pairs of the first look.
        is_asked: Whether the user named the number of the last one.
    """
    first = min(max(fewest + fewest % 2, _FIRST_PAIRS), most)
    counts = [*range(first, most, 2), most]
    before, found = 0, []
    for count in counts:
        part = 1.0
        if count >= RECOMMENDED_PAIRS:
            part, before = (count - before) / most, count
        found.append(Look(count, part, most, is_first=count == first, is_asked=is_asked))
    return tuple(found)


def _undecided_rows(result: GateResult, most: int) -> str:
    """Return which rows that many pairs may decide, "" for none."""
    slower = [row.path for row in result.regressions]
    within = [
        row
        for row in result.rows
        if row.is_undecided and 0 < row.pairs_needed <= HOPE * most and not _is_around(row, slower)
    ]
    enough = 0  # a gate that is decided without paths that do not seem to have changed
    if result.verdict is SuiteVerdict.INCONCLUSIVE:
        enough = HOPE * most if _passes_without(result, within) else most
    rows = sum(row.pairs_needed <= enough or abs(row.change) > row.limit / 2.0 for row in within)
    return count_text(rows, "check") if rows else ""


def _passes_without(result: GateResult, within: Sequence[GateRow]) -> bool:
    """Return whether an inconclusive gate passes if it turns out that these rows did not change."""
    known = {id(row) for row in within}
    rows = [replace(row, verdict=Verdict.SAME) if id(row) in known else row for row in result.rows]
    notes = [note for note in result.notes if not note.voids]  # which more pairs may clear
    return sum_up(rows, result.structure, notes) is SuiteVerdict.PASS


def _is_around(row: GateRow, slower: Sequence[tuple[str, ...]]) -> bool:
    """Return whether one of these paths is below the row, whose total says nothing new then."""
    depth = len(row.path)
    return row.is_total and any(each[:depth] == row.path for each in slower)
