"""From rows to one verdict.

An empty base is NO-BASELINE and runs of different devices are INCOMPARABLE. Otherwise the gate
FAILs if a path or the whole run REGRESSED, or a structural change is forbidden; it is INCOMPARABLE
if the canary kernels changed; it is INCONCLUSIVE if a note says that nothing was decided, or if one
of these is undecided: the whole run, a path that the policy names or that would have regressed but
for an obstacle, a scope or layer with more than 5 % of the time, or single paths that have more
than 5 % of it together; else it PASSes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from proton_bench.gate.judge.result import GateRow, Note
from proton_bench.gate.judge.structure import StructuralChange
from proton_bench.gate.judge.verdict import Reason, SuiteVerdict, Verdict

__all__ = ["UNDECIDED_SHARE", "sum_up", "undecided_share", "worst_findable"]

# So much of the time of a run may stay undecided.
UNDECIDED_SHARE = 0.05


def sum_up(
    rows: Sequence[GateRow], structure: Sequence[StructuralChange], notes: Sequence[Note]
) -> SuiteVerdict:
    """Return the overall verdict."""
    if any(row.verdict is Verdict.REGRESSED for row in rows):
        return SuiteVerdict.FAIL
    if any(change.fails for change in structure):
        return SuiteVerdict.FAIL
    reasons = {note.reason for note in notes}
    if Reason.NOT_COMPARABLE in reasons:
        return SuiteVerdict.INCOMPARABLE
    if Reason.NO_BASE in reasons:
        return SuiteVerdict.NO_BASELINE
    undecided = [row for row in rows if row.is_undecided]
    if (
        any(note.voids for note in notes)
        or any(_is_decisive(row) for row in undecided)
        or undecided_share(rows) > UNDECIDED_SHARE
    ):
        return SuiteVerdict.INCONCLUSIVE
    return SuiteVerdict.PASS


def undecided_share(rows: Sequence[GateRow]) -> float:
    """Return the share of undecided single paths in the gated time; a path counts once."""
    single = [row for row in rows if not (row.is_total or row.is_extra)]
    gated = {(row.path, row.occurrence): row.share for row in single}
    undecided = {(row.path, row.occurrence): row.share for row in single if row.is_undecided}
    total = sum(gated.values())
    return sum(undecided.values()) / total if total > 0.0 else float(bool(undecided))


def worst_findable(rows: Sequence[GateRow]) -> GateRow | None:
    """Return the path with the largest findable change of those with 95 % of the gated time."""
    single = [
        row
        for row in rows
        if not (row.is_total or row.is_extra or Reason.QUARANTINE in row.reasons)
    ]
    single.sort(key=lambda row: row.findable if math.isfinite(row.findable) else math.inf)
    total, seen = sum(row.share for row in single), 0.0
    for row in single:
        seen += row.share
        if seen >= (1.0 - UNDECIDED_SHARE) * total:
            return row if math.isfinite(row.findable) else None
    return None


def _is_decisive(row: GateRow) -> bool:
    """Return whether an undecided row alone keeps the gate from passing."""
    if row.named or row.downgraded or row.is_extra:
        return True
    return row.is_total and row.share > UNDECIDED_SHARE
