"""What there is to show of a gate, whether or not it came to a verdict."""

from __future__ import annotations

from dataclasses import dataclass

from proton_bench.gate.judge.result import GateResult, GateRow
from proton_bench.gate.judge.structure import StructuralChange
from proton_bench.gate.judge.verdict import SuiteVerdict, Verdict

__all__ = ["Outcome"]

_CALM = frozenset({Verdict.SAME})


@dataclass(frozen=True, slots=True)
class Outcome:
    """A gate for people and programs.

    Attributes:
        result: What the gate said.
        explanation: What explains the change of the whole run, "" where nothing is to be said.
        problem: Why nothing was compared, "" where something was: the verdict then is ERROR or
            NO-BASELINE.
    """

    result: GateResult
    explanation: str = ""
    problem: str = ""

    @classmethod
    def failed(cls, problem: str) -> Outcome:
        """Return the outcome of a gate that could not read what it was given."""
        return cls(GateResult(SuiteVerdict.ERROR), problem=problem)

    @property
    def telling_rows(self) -> tuple[GateRow, ...]:
        """The rows that somebody should look at, worst first."""
        return tuple(row for row in self.result.rows if row.verdict not in _CALM)

    @property
    def calm_rows(self) -> tuple[GateRow, ...]:
        """The rows that are the same on both sides."""
        return tuple(row for row in self.result.rows if row.verdict in _CALM)

    @property
    def structure(self) -> tuple[StructuralChange, ...]:
        """Structural changes: those that fail first, then by how much time they stand for."""
        return tuple(
            sorted(self.result.structure, key=lambda each: (not each.fails, -abs(each.change)))
        )
