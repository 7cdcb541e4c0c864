"""Changes of the call tree: exact, and without statistics."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.compare.pairing import RowState
from proton_bench.analysis.selector import Selectors
from proton_bench.gate.policy import Policy, Threshold
from proton_bench.gate.verdict.benchmarks import launch_slack
from proton_bench.gate.verdict.checks import ThresholdsByPath
from proton_bench.gate.verdict.measured import Measured
from proton_bench.gate.verdict.result import Kind, Reason, StructuralChange

Numbers = npt.NDArray[np.float64]


_KINDS = {
    RowState.NEW: Kind.NEW,
    RowState.REMOVED: Kind.REMOVED,
    RowState.MOVED: Kind.MOVED,
    RowState.RENAMED: Kind.MOVED,
}


def find_structural_changes(measured: Measured, policy: Policy) -> tuple[StructuralChange, ...]:
    """Return the structural changes of measured paths, in the order of the tree."""
    rows = np.flatnonzero(_candidates(measured)).tolist()
    measured.check_paths(rows)
    survey = _Survey(measured, policy)
    return tuple(change for row in rows if (change := _change_of(survey, row)) is not None)


class _Survey:
    """Known facts about all rows.

    Attributes:
        measured: The runs.
        policy: The thresholds and limits.
        shares: Share of each row in a run's time.
        slack: Tolerance of launch counts for each run and row.
        allowed: Thresholds about launches.
        quarantined: Which globs of the policy's quarantine match each row.
    """

    def __init__(self, measured: Measured, policy: Policy) -> None:
        tree = measured.comparison.tree
        self.measured, self.policy = measured, policy
        self.shares, self.slack = measured.shares(), launch_slack(measured)
        self.allowed = ThresholdsByPath((e for e in policy.thresholds if e.is_structural), tree)
        self.quarantined = Selectors(policy.quarantine).of_tree(tree)


def _candidates(measured: Measured) -> npt.NDArray[np.bool_]:
    """Mark measured rows that did not match, or whose launches differ in any two runs."""
    base, new = (each.any(axis=0) for each in measured.sides(measured.present))
    counted = measured.calls.min(axis=0) != measured.calls.max(axis=0)
    changed = (base != new) | counted | (measured.comparison.tree.states != RowState.MATCHED)
    found: npt.NDArray[np.bool_] = (base | new) & changed & ~measured.canary
    return found


def _change_of(survey: _Survey, row: int) -> StructuralChange | None:
    measured, slack = survey.measured, survey.slack[:, row]
    calls = measured.calls[:, row]
    base, new = (_range(each) for each in measured.sides(calls))
    lowest, highest = measured.sides(calls - slack), measured.sides(calls + slack)
    known = [
        (float(low.min()), float(high.max())) for low, high in zip(lowest, highest, strict=True)
    ]
    state = _state(measured, row)
    kind = _KINDS.get(state)
    if kind in {None, Kind.MOVED} and base[1] and new[1] and _is_apart(known[0], known[1]):
        # One line per path: launches matter more than the place.
        kind = Kind.LAUNCHES
    if kind is None:
        return None
    allowed = survey.allowed.of_row(row)
    exceeds = any(_exceeds(each, known[0], known[1]) for each in allowed.values())
    quarantined = bool(survey.quarantined[row])
    return StructuralChange(
        path=measured.comparison.tree.path(row),
        kind=kind,
        former_path=_former_path(measured, row, state),
        base_calls=base,
        new_calls=new,
        change=_change_by_launches(measured, row),
        share=float(survey.shares[row]),
        fails=not quarantined and exceeds,
        reasons=(Reason.QUARANTINE,) if quarantined else (),
    )


def _state(measured: Measured, row: int) -> RowState:
    """Return the row's state; a row without a value on one side is new or removed too."""
    base, new = (bool(each[:, row].any()) for each in measured.sides(measured.present))
    if base and new:
        return RowState(int(measured.comparison.tree.states[row]))
    return RowState.NEW if new else RowState.REMOVED


def _former_path(measured: Measured, row: int, state: RowState) -> tuple[str, ...]:
    tree = measured.comparison.tree
    if state is RowState.RENAMED:
        return (*tree.path(row)[:-1], tree.former_name(row) or "")
    return tuple(tree.origins.get(row, ()))


def _range(calls: Numbers) -> tuple[float, float]:
    return float(calls.min()), float(calls.max())


def _is_apart(base: tuple[float, float], new: tuple[float, float]) -> bool:
    """Return whether no run of one side has as many launches as any run of the other."""
    return new[0] > base[1] or new[1] < base[0]


def _exceeds(threshold: Threshold, base: tuple[float, float], new: tuple[float, float]) -> bool:
    more, fewer = new[0] - base[1], base[0] - new[1]
    distance = max(more, fewer, 0.0)
    if distance <= 0.0:
        return False
    before = base[1] if distance == more else base[0]
    ratio, absolute = threshold.ratio, threshold.absolute
    beyond = ratio is None or distance > ratio * before
    return beyond and (absolute is None or distance > absolute)


def _change_by_launches(measured: Measured, row: int) -> float:
    own = measured.comparison.own
    if own is None:
        return 0.0
    if own.split is None:
        return float(own.change[row])
    return float(own.split.launches[row] + own.split.rest[row])
