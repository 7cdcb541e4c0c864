"""Checks: the thresholds of a policy, applied to rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.compare.pairing import PairedTree
from proton_bench.analysis.view.names import steady_name
from proton_bench.gate.judge.benchmarks import whole_benchmarks
from proton_bench.gate.judge.measured import Measured
from proton_bench.gate.policy.policy import Policy
from proton_bench.gate.policy.selector import Selectors
from proton_bench.gate.policy.threshold import Threshold
from proton_bench.gate.statistics.timing import Limits

__all__ = ["Check", "Governing", "choose_checks", "lasting_key", "limits_of"]

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Check:
    """One check of one path.

    Attributes:
        row: Row of the comparison.
        threshold: The threshold.
        named: Whether a selector of the policy chose the path.
        occurrence: Number among the rows with this path, from 0 in the order of the tree.
    """

    row: int
    threshold: Threshold
    named: bool
    occurrence: int = 0


def choose_checks(measured: Measured, policy: Policy) -> tuple[Check, ...]:
    """Return the checks of paths measured on both sides, chosen without looking at changes.

    A path is checked if a selector names it, if it has ``policy.share`` of the time, or if it is a
    whole benchmark.
    """
    tree = measured.comparison.tree
    base, new = measured.sides(measured.present)
    rows = np.flatnonzero(base.any(axis=0) & new.any(axis=0) & ~measured.canary)
    large = (measured.shares() >= policy.share) | whole_benchmarks(measured)
    timed = [each for each in policy.thresholds if not each.is_structural]
    if not any(each.selector for each in timed):
        rows = rows[large[rows]]
    governing, occurrences = Governing(timed, tree), _occurrences(measured)
    checks = [
        Check(row, each, bool(each.selector), occurrences[row])
        for row in rows.tolist()
        for each in governing.of_row(row).values()
        if large[row] or each.selector
    ]
    measured.check_paths([each.row for each in checks])
    return tuple(checks)


def _occurrences(measured: Measured) -> list[int]:
    """Return for each row the number of measured rows with the same path before it."""
    tree = measured.comparison.tree
    frames, parents = tree.frames().tolist(), tree.parents.tolist()
    measures = set(np.flatnonzero(measured.present.any(axis=0)).tolist())
    labels: dict[tuple[int, int], int] = {}
    seen: Counter[int] = Counter()
    own, found = [0] * len(parents), [0] * len(parents)
    for row in range(1, len(parents)):
        label = labels.setdefault((own[parents[row]], frames[row]), len(labels) + 1)
        own[row], found[row] = label, seen[label]
        seen[label] += row in measures
    return found


def lasting_key(measured: Measured, check: Check) -> tuple[tuple[str, ...], int, str]:
    """Return path, occurrence and metric, with names that other edits of a file keep."""
    path = measured.comparison.tree.path(check.row)
    steady = tuple(steady_name(name) for name in path)
    return steady, check.occurrence, check.threshold.metric


class Governing:
    """Which thresholds apply to which paths: the last one of each metric.

    Args:
        thresholds: In the order in which they were written.
        tree: The paths.
    """

    def __init__(self, thresholds: Iterable[Threshold], tree: PairedTree) -> None:
        self._thresholds = tuple(thresholds)
        self._selectors = Selectors(each.selector for each in self._thresholds)
        self._selected = self._selectors.of_tree(tree)
        self._known: dict[int, dict[str, Threshold]] = {}

    def of_row(self, row: int) -> dict[str, Threshold]:
        """Return the thresholds of a path by their metrics."""
        selected = self._selected[row]
        found = self._known.get(selected)
        if found is None:
            chosen = (self._thresholds[place] for place in self._selectors.chosen(selected))
            found = self._known[selected] = {each.metric: each for each in chosen}
        return found


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
