"""The verdict of a gate on each test, for the head of the page of its changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from proton_bench.gate.judge.outcome import Outcome
from proton_bench.gate.judge.result import GateRow
from proton_bench.gate.judge.structure import StructuralChange
from proton_bench.gate.judge.verdict import SuiteVerdict, Verdict
from proton_bench.report.words.gate_words import headline, notes, row_text, structure_text, why
from proton_bench.support.text import visible
from proton_bench.support.units import count_text

__all__ = ["GateVerdicts", "TestVerdict", "gate_verdicts"]

_Found = TypeVar("_Found", GateRow, StructuralChange)

_MAX_REASONS = 5
_MAX_NAME = 300
_RANKS = (SuiteVerdict.FAIL, SuiteVerdict.INCONCLUSIVE, SuiteVerdict.PASS)


@dataclass(frozen=True, slots=True)
class TestVerdict:
    """The verdict on one test.

    Attributes:
        test: Its name for readers, such as its node id.
        path: Name of its row right below the root, as the flame graph shows it.
        verdict: PASS, FAIL or INCONCLUSIVE.
        reasons: What was found, the deciding thing first.
    """

    __test__ = False  # pytest would collect it

    test: str
    path: str
    verdict: SuiteVerdict
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GateVerdicts:
    """A gate on top of a page.

    Attributes:
        headline: The verdict on the whole, and its worst path.
        verdict: The verdict on the whole.
        notes: Notes on the whole.
        tests: Verdicts on tests, failing ones first.
    """

    headline: str
    verdict: SuiteVerdict
    notes: tuple[str, ...]
    tests: tuple[TestVerdict, ...]


def gate_verdicts(outcome: Outcome, tests: Mapping[str, str]) -> GateVerdicts:
    """Return the verdicts on the tests of a gate.

    Args:
        outcome: The result of the gate.
        tests: Name for readers of each test, by the first name of its paths.
    """
    rows: dict[str, list[GateRow]] = {name: [] for name in tests}
    changes: dict[str, list[StructuralChange]] = {}
    for row in outcome.result.rows:
        rows.setdefault(row.path[0] if row.path else "", []).append(row)
    for change in outcome.structure:
        changes.setdefault(change.path[0] if change.path else "", []).append(change)
    found = [
        TestVerdict(
            test=visible(tests.get(name, name), _MAX_NAME),
            path=visible(name),
            verdict=_verdict(rows.get(name, []), changes.get(name, [])),
            reasons=_reasons(rows.get(name, []), changes.get(name, []), outcome),
        )
        for name in dict.fromkeys((*rows, *changes))
        if name
    ]
    return GateVerdicts(
        headline=headline(outcome),
        verdict=outcome.result.verdict,
        notes=tuple(notes(outcome)),
        tests=tuple(sorted(found, key=lambda each: _RANKS.index(each.verdict))),
    )


def _verdict(rows: Sequence[GateRow], changes: Sequence[StructuralChange]) -> SuiteVerdict:
    if any(_is_worse(row) for row in rows) or any(change.fails for change in changes):
        return SuiteVerdict.FAIL
    if not rows or any(row.is_undecided for row in rows):
        return SuiteVerdict.INCONCLUSIVE
    return SuiteVerdict.PASS


def _reasons(
    rows: Sequence[GateRow], changes: Sequence[StructuralChange], outcome: Outcome
) -> tuple[str, ...]:
    """Return what decided, else what was not decided, else every check."""
    said = [structure_text(_below_test(each), outcome) for each in changes if each.fails]
    worse = [row for row in rows if _is_worse(row)]
    unknown = [row for row in rows if row.is_undecided]
    telling = worse if worse or said else unknown or rows
    said += [_reason(row, outcome) for row in telling]
    cut = len(said) - _MAX_REASONS
    more = [count_text(cut, "further check", "further checks")] if cut > 0 else []
    return (*said[:_MAX_REASONS], *more) or ("no check of this test was made",)


def _below_test(found: _Found) -> _Found:
    """Leave out the name of the test, which stands beside it."""
    return replace(found, path=found.path[1:]) if len(found.path) > 1 else found


def _is_worse(row: GateRow) -> bool:
    return row.verdict is Verdict.REGRESSED


def _reason(row: GateRow, outcome: Outcome) -> str:
    said = why(row, outcome)
    allowed = visible(row.threshold.rpartition("@")[2], 60)
    return f"{row_text(_below_test(row), outcome)}; allowed {allowed}" + (
        f"; {said}" if said else ""
    )
