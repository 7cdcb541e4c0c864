"""Results of a gate for reports, with or without a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from proton_bench.analysis.compare.compare import Comparison
from proton_bench.gate.judge.result import GateResult, GateRow
from proton_bench.gate.judge.structure import StructuralChange
from proton_bench.gate.judge.verdict import Reason, SuiteVerdict, Verdict
from proton_bench.model.metrics.metric import MetricSpec

__all__ = ["Outcome"]

# A cause is named from this share of a change on.
_GOOD_PART = 0.2
_OF_ONE_TIME = frozenset({"median", "mean", "total", "wall"})


@dataclass(frozen=True)  # no slots: reports ask for the same for each of thousands of rows
class Outcome:
    """A gate for reports.

    Attributes:
        result: The result of the gate.
        explanation: Explanation of the change of the whole run, or "".
        problem: Why nothing was compared, with the verdict ERROR or NO-BASELINE; else "".
    """

    result: GateResult
    explanation: str = ""
    problem: str = ""

    @classmethod
    def failed(cls, problem: str) -> Outcome:
        """Return the outcome of a gate that could not read its input."""
        return cls(GateResult(SuiteVerdict.ERROR), problem=problem)

    @property
    def telling_rows(self) -> tuple[GateRow, ...]:
        """The rows worth looking at, worst first."""
        return self._parts[0]

    @property
    def calm_rows(self) -> tuple[GateRow, ...]:
        """The other rows, worst first.

        They are the same on both sides, or of the host and little is known, or say of a scope what
        a row above says: where elapsed time is all there is, the typical entry of a scope and its
        total are nearly one number.
        """
        return self._parts[1]

    @cached_property
    def _parts(self) -> tuple[tuple[GateRow, ...], tuple[GateRow, ...]]:
        telling: dict[object, GateRow] = {}
        calm = []
        for row in self.result.rows:
            is_time = self._is_elapsed and row.metric in _OF_ONE_TIME
            metric = "wall" if is_time else row.metric
            key = (row.path, row.occurrence, row.verdict, metric)
            if _is_calm(row) or key in telling:
                calm.append(row)
            else:
                telling[key] = row
        return tuple(telling.values()), tuple(calm)

    @cached_property
    def structure(self) -> tuple[StructuralChange, ...]:
        """Structural changes: failing ones first, then by their time."""
        return tuple(
            sorted(self.result.structure, key=lambda each: (not each.fails, -abs(each.change)))
        )

    def grown_below(self, row: GateRow) -> list[StructuralChange]:
        """Return structural changes that took a good part of what a row took more, largest first.

        They are below its path; or at the path itself, if the row is a total.
        """
        return [
            each
            for each in self._grown.get(row.path, ())
            if (row.is_total or each.path != row.path) and self._explains(each.change, row)
        ]

    def slower_below(self, row: GateRow) -> list[tuple[str, ...]]:
        """Return regressed paths below a row with a good part of what it took more, worst first."""
        return [
            path
            for path in self._slower.get(row.path, ())
            if self._explains(self._changes.get(path, 0.0), row)
        ]

    def _explains(self, change: float, row: GateRow) -> bool:
        """Return whether it is a good part of what the row took more, in the unit of the result."""
        if row.is_total:
            return change >= _GOOD_PART * (row.new - row.base)
        # Launches of a path count nothing below it, but times of entries do.
        return self._is_elapsed and change >= _GOOD_PART * self._changes.get(row.path, math.inf)

    @cached_property
    def _is_elapsed(self) -> bool:
        return MetricSpec(self.result.metric).base == "wall"

    @cached_property
    def _grown(self) -> Mapping[tuple[str, ...], Sequence[StructuralChange]]:
        """Structural changes that took time, largest first, by each path at or above them."""
        found: dict[tuple[str, ...], list[StructuralChange]] = {}
        for each in sorted(self.structure, key=lambda each: -each.change):
            if each.change > 0.0:
                for depth in range(len(each.path) + 1):
                    found.setdefault(each.path[:depth], []).append(each)
        return found

    @cached_property
    def _slower(self) -> Mapping[tuple[str, ...], Sequence[tuple[str, ...]]]:
        """Paths that regressed, worst first, by each path above them."""
        found: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        paths = dict.fromkeys(row.path for row in self.result.regressions if not row.is_total)
        for path in paths:
            for depth in range(len(path)):
                found.setdefault(path[:depth], []).append(path)
        return found

    @cached_property
    def _changes(self) -> Mapping[tuple[str, ...], float]:
        """What a run took more in each path that regressed, as far as known."""
        regressed = {row.path for row in self.result.regressions}
        seen = self.result.comparison
        return {} if seen is None or not regressed else _changes_of(seen, regressed)


def _changes_of(
    comparison: Comparison, paths: set[tuple[str, ...]]
) -> dict[tuple[str, ...], float]:
    """Return the change of the rows with each of these paths, without what is below if known."""
    tree = comparison.tree
    changes = (comparison.own or comparison.inclusive).change.tolist()
    names, frames = tree.recorded or tree.strings, tree.frames().tolist()
    above = {path[:depth] for path in paths for depth in range(len(path) + 1)}
    found = dict.fromkeys(paths, 0.0)
    known: list[tuple[str, ...] | None] = [()]
    for row, parent in enumerate(tree.parents.tolist()[1:], start=1):
        before = known[parent]
        path = None if before is None else (*before, names[frames[row]])
        known.append(path if path in above else None)
        if path in found:
            found[path] += changes[row]
    return found


def _is_calm(row: GateRow) -> bool:
    is_open = row.is_undecided or Reason.QUARANTINE in row.reasons or not row.is_extra
    return row.verdict is Verdict.SAME or (row.verdict is Verdict.INCONCLUSIVE and not is_open)
