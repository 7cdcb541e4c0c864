"""Results of a gate for reports, with or without a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from proton_bench.gate.judge.result import GateResult, GateRow
from proton_bench.gate.judge.structure import StructuralChange
from proton_bench.gate.judge.verdict import Reason, SuiteVerdict, Verdict
from proton_bench.model.metrics.metric import MetricSpec

__all__ = ["Outcome"]

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

        They are the same on both sides, or of slowest launches of which little is known, or say of
        a scope what a row above says: where elapsed time is all there is, the typical entry of a
        scope and its total are nearly one number.
        """
        return self._parts[1]

    @cached_property
    def _parts(self) -> tuple[tuple[GateRow, ...], tuple[GateRow, ...]]:
        telling: dict[object, GateRow] = {}
        calm = []
        one_time = MetricSpec(self.result.metric).base == "wall"
        for row in self.result.rows:
            is_time = one_time and row.metric in _OF_ONE_TIME
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

    @cached_property
    def grown_below(self) -> Mapping[tuple[str, ...], Sequence[StructuralChange]]:
        """Structural changes that took time, largest first, by each path at or above them."""
        found: dict[tuple[str, ...], list[StructuralChange]] = {}
        for each in sorted(self.structure, key=lambda each: -each.change):
            if each.change > 0.0:
                for depth in range(len(each.path) + 1):
                    found.setdefault(each.path[:depth], []).append(each)
        return found

    @cached_property
    def slower_below(self) -> Mapping[tuple[str, ...], Sequence[tuple[str, ...]]]:
        """Paths that regressed, worst first, by each path above them."""
        found: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        paths = dict.fromkeys(row.path for row in self.result.regressions if not row.is_total)
        for path in paths:
            for depth in range(len(path)):
                found.setdefault(path[:depth], []).append(path)
        return found


def _is_calm(row: GateRow) -> bool:
    is_open = row.is_undecided or Reason.QUARANTINE in row.reasons or not row.is_extra
    return row.verdict is Verdict.SAME or (row.verdict is Verdict.INCONCLUSIVE and not is_open)
