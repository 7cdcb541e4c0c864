"""Results of a gate for reports, with or without a verdict."""

from __future__ import annotations

from dataclasses import dataclass

from proton_bench.gate.judge.result import GateResult, GateRow
from proton_bench.gate.judge.structure import StructuralChange
from proton_bench.gate.judge.verdict import Reason, SuiteVerdict, Verdict

__all__ = ["Outcome"]


@dataclass(frozen=True, slots=True)
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
        return tuple(row for row in self.result.rows if not _is_calm(row))

    @property
    def calm_rows(self) -> tuple[GateRow, ...]:
        """The other rows: the same on both sides, or slowest launches of which little is known."""
        return tuple(row for row in self.result.rows if _is_calm(row))

    @property
    def structure(self) -> tuple[StructuralChange, ...]:
        """Structural changes: failing ones first, then by their time."""
        return tuple(
            sorted(self.result.structure, key=lambda each: (not each.fails, -abs(each.change)))
        )


def _is_calm(row: GateRow) -> bool:
    is_open = row.is_undecided or Reason.QUARANTINE in row.reasons or not row.is_extra
    return row.verdict is Verdict.SAME or (row.verdict is Verdict.INCONCLUSIVE and not is_open)
