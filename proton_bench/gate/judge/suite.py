"""From rows to one verdict.

An empty base is NO-BASELINE and runs of different devices are INCOMPARABLE. Otherwise the gate
FAILs if a path REGRESSED or a structural change is forbidden; it is INCOMPARABLE if the canary
kernels changed; it is INCONCLUSIVE if a path would have regressed but for an obstacle, if a path
that the policy names is undecided, if undecided paths have more than 5 % of the gated time, if
unmatched paths have so much time that little was compared, or if the experiment is void; else it
PASSes.
"""

from __future__ import annotations

from collections.abc import Sequence

from proton_bench.gate.judge.result import GateRow, Note
from proton_bench.gate.judge.structure import StructuralChange
from proton_bench.gate.judge.verdict import Reason, SuiteVerdict, Verdict
from proton_bench.gate.policy.policy import Policy

__all__ = ["sum_up", "undecided_share"]

# Notes that void an experiment without a regression.
_VOID = frozenset(
    {
        Reason.COMMON_SHIFT,
        Reason.CONTROLS_MOVED,
        Reason.DISTURBED,
        Reason.NEW_PATHS,
        Reason.NO_VALUES,
        Reason.NOTHING_GATED,
        Reason.REMOVED_PATHS,
        Reason.RULE_MATCHED_NOTHING,
    }
)


def sum_up(
    rows: Sequence[GateRow],
    structure: Sequence[StructuralChange],
    notes: Sequence[Note],
    *,
    policy: Policy,
) -> SuiteVerdict:
    """Return the overall verdict."""
    if any(row.verdict is Verdict.REGRESSED for row in rows):
        return SuiteVerdict.FAIL
    if any(change.fails for change in structure):
        return SuiteVerdict.FAIL
    reasons = {note.reason for note in notes}
    if Reason.CANARY_MOVED in reasons:
        return SuiteVerdict.INCOMPARABLE
    if Reason.NOTHING_MATCHED in reasons:
        return SuiteVerdict.NO_BASELINE
    undecided = [row for row in rows if row.is_undecided]
    if (
        reasons & _VOID
        or any(row.named or row.downgraded for row in undecided)
        or undecided_share(rows) > policy.undecided_share
    ):
        return SuiteVerdict.INCONCLUSIVE
    return SuiteVerdict.PASS


def undecided_share(rows: Sequence[GateRow]) -> float:
    """Return the share of undecided paths in the gated time; a path counts once."""
    gated = {(row.path, row.occurrence): row.share for row in rows}
    undecided = {(row.path, row.occurrence): row.share for row in rows if row.is_undecided}
    total = sum(gated.values())
    return sum(undecided.values()) / total if total > 0.0 else float(bool(undecided))
