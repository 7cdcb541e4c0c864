"""Checks: the thresholds of a policy, applied to rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.compare.pairing import PairedTree
from proton_bench.analysis.selector import Selectors
from proton_bench.analysis.view.names import steady_name
from proton_bench.gate.judge.benchmarks import whole_benchmarks
from proton_bench.gate.judge.measured import SUMMED, Measured
from proton_bench.gate.policy.policy import Policy
from proton_bench.gate.policy.threshold import Threshold
from proton_bench.gate.statistics.decision import Limits
from proton_bench.model.frame import FrameKind

__all__ = [
    "Check",
    "Governing",
    "choose_checks",
    "elapsed_times",
    "lasting_keys",
    "limits_of",
    "own_paths",
]

Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# Rows that stand for what is below them.
_ONE_LAUNCH = [FrameKind.OP, FrameKind.PYTHON, FrameKind.STATE, FrameKind.LINE]
_NEARLY_ALL = 0.95


@dataclass(frozen=True, slots=True)
class Check:
    """One check of one path.

    Attributes:
        row: Row of the comparison; 0 is the whole run.
        threshold: The threshold.
        named: Whether a selector of the policy chose the path.
        share: Share of the path in a base run, or in a new run if that is more: of the time, with
            the paths below it for a total; of the elapsed time for `wall`.
        occurrence: Number among the rows with this path, from 0 in the order of the tree.
    """

    row: int
    threshold: Threshold
    named: bool
    share: float
    occurrence: int = 0

    @property
    def is_extra(self) -> bool:
        """Whether it is of the host and was not asked for."""
        return self.threshold.metric == "wall" and not self.threshold.is_written


def choose_checks(measured: Measured, policy: Policy) -> tuple[Check, ...]:
    """Return the checks of paths measured on both sides, chosen without looking at changes.

    A path is checked if a selector names it, if it has ``policy.share`` of the time, or if it is a
    whole benchmark. Launches are checked one by one, scopes and layers by their totals with all
    that is below them. Bytes, instructions and the like are recorded of some paths alone, so only
    those that have them on a side are checked without a selector.
    """
    timed = [
        each
        for each in policy.thresholds
        # Where elapsed time is all there is, it has all other checks.
        if not each.is_structural
        and (each.is_written or not measured.nested or each.metric != "wall")
    ]
    candidates = _Candidates(measured, policy, {each.metric for each in timed} & SUMMED.keys())
    named = any(each.selector for each in timed)
    rows = candidates.rows(everything=named)
    tree = measured.comparison.tree
    governing, occurrences = Governing(timed, tree), _occurrences(measured, tree.strings)
    checks = [
        Check(row, each, is_named, candidates.share_of(row, each.metric), occurrences[row])
        for row in rows.tolist()
        for each in _settled(governing.of_row(row), is_one=measured.nested and row > 0).values()
        for is_named in [bool(each.selector) and each.is_written]
        if candidates.has(row, each.metric, is_named=bool(each.selector))
    ]
    measured.check_paths([each.row for each in checks])
    copies = _copies(measured, checks) if measured.nested else frozenset()
    return tuple(
        each for each in checks if each.threshold.metric != "median" or each.row not in copies
    )


def _settled(found: dict[str, Threshold], *, is_one: bool) -> dict[str, Threshold]:
    """Return the thresholds of a path, with defaults that follow what was written for it.

    Args:
        found: The thresholds that apply, by their metrics.
        is_one: Whether the total of the path is its elapsed time.
    """
    if is_one and "wall" in found and not found["total"].is_written:
        found = {name: each for name, each in found.items() if name != "total"}
    written = {name for name, each in found.items() if each.is_written and not each.is_offered}
    if not {"mean", "min"}.isdisjoint(written):
        # They were written instead of the median.
        return {name: each for name, each in found.items() if name != "median" or name in written}
    return found


class _Candidates:
    """Which rows have something to check, and its share of a run.

    Args:
        measured: The runs.
        policy: Has the least share of a path that nobody names.
        summed: Metrics of thresholds that only some paths may have.
    """

    def __init__(self, measured: Measured, policy: Policy, summed: Collection[str]) -> None:
        self._least = policy.share
        base, new = (each.any(axis=0) for each in measured.sides(measured.present))
        self._launched = base & new & ~measured.canary
        self._rounds = whole_benchmarks(measured)
        self._launch_shares = np.maximum(*measured.side_shares())
        self._total_shares = np.maximum(*measured.side_shares(inclusive=True))
        sums = [each.max(axis=0) > 0.0 for each in measured.sides(measured.inclusive)]
        self._summed = sums[0] & sums[1] & ~measured.canary
        self._groups = self._summed & _groups(measured)
        self._walls = _walls(measured)
        self._recorded: dict[str, Mask] = {
            name: np.asarray(np.isfinite(measured.sums(SUMMED[name])).any(axis=0))
            for name in summed
        }
        self._measured = measured

    def rows(self, *, everything: bool) -> npt.NDArray[np.intp]:
        """Return the rows that may have a check; all of them if any path may be named."""
        if everything:
            return np.flatnonzero(self._launched | self._summed | (self._walls > 0.0))
        large = self._launched & ((self._launch_shares >= self._least) | self._rounds)
        large |= self._groups & (self._total_shares >= self._least)
        return np.flatnonzero(large | (self._walls >= self._least))

    def has(self, row: int, metric: str, *, is_named: bool) -> bool:
        """Return whether there is something to check."""
        share, least = self.share_of(row, metric), 0.0 if is_named else self._least
        if metric == "total":
            if row == 0:
                return self._measured.whole and bool(self._summed[0])
            return bool((self._summed if is_named else self._groups)[row]) and share >= least
        if metric == "wall":
            return share > 0.0 and share >= least
        if not is_named and metric in self._recorded and not self._recorded[metric][row]:
            return False
        large = share >= least or bool(self._rounds[row])
        return row > 0 and bool(self._launched[row]) and large

    def share_of(self, row: int, metric: str) -> float:
        """Return the share of a run that a check is about."""
        if metric == "total":
            return float(self._total_shares[row])
        return float((self._walls if metric == "wall" else self._launch_shares)[row])


def _copies(measured: Measured, checks: Sequence[Check]) -> set[int]:
    """Return scopes that each run entered once at most, so that totals are the times of entries."""
    amounts = {(each.row, each.threshold.metric): each.threshold.amounts for each in checks}
    rows = [row for row, metric in amounts if metric == "total" and row > 0]
    both = [row for row in rows if amounts.get((row, "median")) == amounts[row, "total"]]
    entries = measured.calls.max(axis=0)
    for line in measured.samples(both) if both else []:
        for row, sample in zip(both, line, strict=True):
            entries[row] = max(entries[row], 0.0 if sample is None else sample.size)
    return {row for row in both if entries[row] <= 1}


def _groups(measured: Measured) -> Mask:
    """Mark the rows whose totals are checked.

    Of rows with nearly equal totals, such as a scope in a scope, it is the outermost one; operators
    and frames of Python only where several paths begin.
    """
    tree, totals = measured.comparison.tree, measured.inclusive
    parents = tree.parents.tolist()
    filled = np.flatnonzero((totals > 0.0).any(axis=0))
    children = np.bincount(tree.parents[filled[filled > 0]], minlength=len(tree))
    several: Mask = np.asarray(children > np.isin(tree.kinds, _ONE_LAUNCH))
    base, new = (side.mean(axis=0).tolist() for side in measured.sides(totals))
    # The totals that are checked at the row, or nearest around it.
    covered = [(base[0], new[0]) if measured.whole else (math.inf, math.inf)]
    found = np.zeros(len(tree), dtype=np.bool_)
    found[0] = measured.whole
    for row in range(1, len(tree)):
        own, around = (base[row], new[row]), covered[parents[row]]
        found[row] = several[row] and not _is_nearly_all(own, around)
        covered.append(own if found[row] else around)
    return found


def _walls(measured: Measured) -> Numbers:
    """Return the share of each row in the elapsed time of all outermost scopes, 0 for none.

    A scope that has nearly all the time of the checked one around it on each side is not checked
    apart from it, nor is the whole run apart from its only outermost scope.
    """
    finite = np.isfinite(values := measured.walls()) & ~measured.canary
    base, new = (each.any(axis=0) for each in measured.sides(finite))
    known: Mask = np.asarray(base & new)
    known[0] &= measured.whole and not measured.nested
    if measured.nested:  # there totals are elapsed times already
        shares: Numbers = np.maximum(*measured.side_shares(inclusive=True))
        return np.where(known, shares, 0.0)
    parents = measured.comparison.tree.parents.tolist()
    means = [each.mean(axis=0) for each in measured.sides(np.where(finite, values, 0.0))]
    times = list(zip(*(each.tolist() for each in means), strict=True))
    covered = [(math.inf, math.inf)]
    for row in range(1, len(parents)):
        own, around = times[row], covered[parents[row]]
        known[row] &= not _is_nearly_all(own, around)
        if known[row] and _is_nearly_all(own, times[0]):
            known[0] = False
        covered.append(own if known[row] else around)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Numbers = np.maximum(*(each / each[0] for each in means))
    return np.where(known & np.isfinite(found), found, 0.0)


def _is_nearly_all(own: Sequence[float], around: Sequence[float]) -> bool:
    """Return whether a row has nearly all of what is around it, on each side."""
    return all(each >= _NEARLY_ALL * most for each, most in zip(own, around, strict=True))


def _occurrences(measured: Measured, names: Sequence[str]) -> list[int]:
    """Return for each row the number of measured rows with the same path before it.

    Args:
        measured: The rows.
        names: What to take for each of their names.
    """
    tree = measured.comparison.tree
    frames, parents = tree.frames().tolist(), tree.parents.tolist()
    measures = set(np.flatnonzero(measured.present.any(axis=0)).tolist())
    labels: dict[tuple[int, str], int] = {}
    seen: Counter[int] = Counter()
    own, found = [0] * len(parents), [0] * len(parents)
    for row in range(1, len(parents)):
        label = labels.setdefault((own[parents[row]], names[frames[row]]), len(labels) + 1)
        own[row], found[row] = label, seen[label]
        seen[label] += row in measures
    return found


def lasting_keys(
    measured: Measured, checks: Sequence[Check]
) -> list[tuple[tuple[str, ...], int, str]]:
    """Return path, occurrence and metric of each check, with names that other edits of a file keep.

    Names that differ in a number that such edits change are one name, so rows are counted anew.
    """
    tree = measured.comparison.tree
    steady = {name: steady_name(name) for name in tree.strings}
    occurrences = _occurrences(measured, [steady[name] for name in tree.strings])
    return [
        (
            tuple(steady[name] for name in tree.path(check.row)),
            occurrences[check.row],
            check.threshold.metric,
        )
        for check in checks
    ]


class Governing:
    """Which thresholds apply to which paths: the last one of each metric.

    Those that only the new side has loosen no other one.

    Args:
        thresholds: In the order in which they were written.
        tree: The paths.

    Attributes:
        refused: Thresholds of the new side that would have loosened others, with these.
    """

    def __init__(self, thresholds: Iterable[Threshold], tree: PairedTree) -> None:
        self._thresholds = tuple(thresholds)
        self._selectors = Selectors(each.selector for each in self._thresholds)
        self._selected = self._selectors.of_tree(tree)
        self._known: dict[int, dict[str, Threshold]] = {}
        self.refused: dict[Threshold, Threshold] = {}

    def of_row(self, row: int) -> dict[str, Threshold]:
        """Return the thresholds of a path by their metrics."""
        selected = self._selected[row]
        found = self._known.get(selected)
        if row == 0:  # which no glob matches
            return {e.metric: e for e in self._thresholds if not e.selector}
        if found is None:
            chosen = (self._thresholds[place] for place in self._selectors.chosen(selected))
            found = self._known[selected] = {}
            for each in chosen:
                known = found.get(each.metric)
                if known is None or not (each.is_offered and each.loosens(known)):
                    found[each.metric] = each
                else:
                    self.refused[each] = known
        return found


def own_paths(checks: Sequence[Check]) -> Mask:
    """Mark the checks of typical launches: those of totals and slowest launches repeat them."""
    return np.array(
        [not each.is_extra and each.threshold.metric not in {"total", "wall"} for each in checks],
        dtype=np.bool_,
    )


def elapsed_times(checks: Sequence[Check]) -> Mask:
    """Mark the checks of elapsed times."""
    return np.array([each.threshold.metric == "wall" for each in checks], dtype=np.bool_)


def limits_of(checks: Sequence[Check], typical: Numbers) -> Limits:
    """Return thresholds on the log scale.

    Growing by a share ``r`` and shrinking back are both ``ln(1 + r)``, so swapping the sides swaps
    better and worse.

    Args:
        checks: The checks.
        typical: A typical value of each, which turns absolute amounts into shares.
    """
    parts = np.array(
        [_part(check.threshold, value) for check, value in zip(checks, typical, strict=True)],
        dtype=np.float64,
    )
    return Limits(
        threshold=np.log1p(parts),
        direction=np.array([check.threshold.direction for check in checks], dtype=np.float64),
    )


def _part(threshold: Threshold, typical: float) -> float:
    if threshold.ratio is not None:
        return threshold.ratio
    absolute = threshold.absolute or 0.0
    known = np.isfinite(typical) and typical > 0.0
    return absolute / float(typical) if known else 1.0
