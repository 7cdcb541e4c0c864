"""A gate on the terminal: the verdict, its explanation, then the rows, worst first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.segment import Segment
from rich.style import Style

from proton_bench.gate.verdict.result import GateRow, Outcome, SuiteVerdict, Verdict
from proton_bench.report.text.theme import DIM, HEADING, WARNING
from proton_bench.report.words.columns import Column, Table
from proton_bench.report.words.edge import fitting
from proton_bench.report.words.gate_words import (
    MEANINGS_OF_COLUMNS,
    columns,
    headline,
    notes,
    shown_row,
    side_lines,
    structure_text,
    why,
)
from proton_bench.support.units import count_text

__all__ = ["GateReport"]

_GOOD = Style(color="green", bold=True)
_BAD = Style(color="red", bold=True)
_NOTE = Style(color="cyan")
_SUITE = {SuiteVerdict.PASS: _GOOD, SuiteVerdict.FAIL: _BAD, SuiteVerdict.ERROR: _BAD}
_ROW = {Verdict.REGRESSED: _BAD, Verdict.IMPROVED: _GOOD, Verdict.SAME: DIM}


@dataclass(frozen=True, slots=True)
class GateReport:
    """A rich renderable of a gate.

    Attributes:
        outcome: What to show.
        everything: Whether all rows are shown.
    """

    outcome: Outcome
    everything: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield the lines; only on a terminal columns and names are cut."""
        edge = options.max_width if console.file.isatty() else None
        outcome = self.outcome
        yield Segment(f"{headline(outcome)}\n", _SUITE.get(outcome.result.verdict, WARNING))
        if outcome.explanation:
            yield Segment(f"whole run: {outcome.explanation}\n")
        for word, text in side_lines(outcome):
            yield Segment(f"{word.rjust(4)}  {text}\n", DIM)
        for note in notes(outcome):
            yield Segment(f"note  {note}\n", WARNING)
        rows = outcome.result.rows if self.everything else outcome.telling_rows
        yield from _table(rows, outcome, edge)
        yield from self._structure(edge)
        yield from self._end(hidden=len(outcome.result.rows) - len(rows))

    def _structure(self, edge: int | None) -> Iterator[Segment]:
        changes = self.outcome.structure
        if changes:
            yield Segment("\nStructure, whose cost counts in the totals\n", HEADING)
        for change in changes:
            line = f"  {'FAILS ' if change.fails else ''}{structure_text(change, self.outcome)}"
            style = _BAD if change.fails else None
            yield Segment(f"{line if edge is None else fitting(line, edge)}\n", style)

    def _end(self, *, hidden: int) -> Iterator[Segment]:
        if hidden:
            yield Segment(f"\n{count_text(hidden, 'more check')}; --all shows all\n", DIM)


def _table(rows: Sequence[GateRow], outcome: Outcome, edge: int | None) -> Iterator[Segment]:
    if not rows:
        return
    table = Table(columns(rows, outcome), edge)
    yield Segment("\n")
    yield from table.heading("path")
    for place, row in enumerate(rows):
        yield from table.values(place, _ROW.get(row.verdict))
        name, said = table.fitting(shown_row(row, outcome)), why(row, outcome)
        if edge is not None:
            said = fitting(said, edge - table.width - cell_len(name) - 2)
        yield Segment(name)
        yield Segment(f"  {said}\n" if said else "\n", _NOTE)
    yield from _legend(table.columns)


def _legend(shown: Sequence[Column]) -> Iterator[Segment]:
    titles = {column.title for column in shown}
    for title, meaning in MEANINGS_OF_COLUMNS.items():
        if title in titles:
            yield Segment(f"  {title}: {meaning}\n", DIM)
