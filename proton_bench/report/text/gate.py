"""A gate: on the terminal, worst rows first, as a JSON document and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.segment import Segment
from rich.style import Style

from proton_bench.gate.verdict.result import GateRow, Outcome, SuiteVerdict, Verdict
from proton_bench.report.text.diff import escaped
from proton_bench.report.words.columns import Column, Table
from proton_bench.report.words.edge import DIM, HEADING, WARNING, edge_of, fitting
from proton_bench.report.words.gate import (
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
        edge = edge_of(console, options)
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


# -- other forms -----------------------------------------------------------------------------------
# Identifies the comment to replace.
MARK = "<!-- proton gate -->"
# GitHub's limits are 65 536 characters for a comment and 1 MiB for a step's summaries.
COMMENT_BYTES = 65_000
SUMMARY_BYTES = 900_000
# Room for the text below the last row.
_RESERVE = 600
_MAX_NOTES = 20


def gate_markdown(outcome: Outcome, limit: int = COMMENT_BYTES) -> str:
    """Return the verdict, its explanation, and as many rows as fit, worst first.

    Args:
        outcome: What to show.
        limit: Most bytes in UTF-8.
    """
    page = _Page(limit - _RESERVE)
    page.add([MARK, f"### {escaped(headline(outcome))}", ""])
    if outcome.explanation:
        page.add([f"Whole run: {escaped(outcome.explanation)}", ""])
    page.add(f"- {word}: {escaped(text)}" for word, text in side_lines(outcome) if word)
    page.add(f"- note {escaped(note)}" for note in notes(outcome)[:_MAX_NOTES])
    left = [(page.add_table(_markdown_table(outcome.telling_rows, outcome)), "row", "rows")]
    if outcome.structure:
        page.add(["", "Structure, whose cost counts in the totals:", ""], needed=True)
        lines = [
            f"- {'**FAILS** ' if each.fails else ''}{escaped(structure_text(each, outcome))}"
            for each in outcome.structure
        ]
        left.append((page.add_what_fits(lines), "structural change", "structural changes"))
    calm = outcome.calm_rows
    if calm:
        text = count_text(len(calm), "more check")
        page.add(["", f"<details><summary>{text}</summary>"], needed=True)
        left.append(
            (
                page.add_table(_markdown_table(calm, outcome)),
                "more check",
                "more checks",
            )
        )
        page.add(["", "</details>"], needed=True)
    cut = [count_text(count, one, many) for count, one, many in left if count]
    if cut:
        page.add(["", f"Not shown for lack of space: {', '.join(cut)}."], needed=True)
    return page.text()


class _Page:
    """Lines with a limit of bytes."""

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._lines: list[str] = []

    def add(self, lines: Iterable[str], *, needed: bool = False) -> None:
        """Add a few short lines; those that do not fit are left out."""
        for line in lines:
            size = len(line.encode("utf-8", "backslashreplace")) + 1
            if size > self._left and not needed:
                return
            self._left -= 0 if needed else size
            self._lines.append(line)

    def add_what_fits(self, lines: Sequence[str]) -> int:
        """Add lines in order as long as they fit, and return how many did not."""
        before = len(self._lines)
        self.add(lines)
        return len(lines) - (len(self._lines) - before)

    def add_table(self, lines: Sequence[str]) -> int:
        """Add a table; its first three lines are not rows."""
        return min(self.add_what_fits(lines), max(len(lines) - 3, 0))

    def text(self) -> str:
        """Return the page."""
        return "\n".join(self._lines) + "\n"


def _markdown_table(rows: Sequence[GateRow], outcome: Outcome) -> list[str]:
    if not rows:
        return []
    shown = columns(rows, outcome)
    titles = [escaped(column.heading) for column in shown]
    lines = ["", f"| {' | '.join([*titles, 'path', 'why'])} |"]
    lines.append(f"| :-- |{' --: |' * (len(titles) - 1)} :-- | :-- |")
    for place, row in enumerate(rows):
        cells = [escaped(column.texts[place]) for column in shown]
        cells += [
            escaped(shown_row(row, outcome)),
            escaped(why(row, outcome)),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def gate_document(outcome: Outcome) -> dict[str, Any]:
    """Return what ``proton gate --json`` prints: everything of `GateResult`, with explanations.

    ``error`` says why there is no verdict, None if there is one. The worst row is first; 5 % is
    0.05; unknown values are None.
    """
    document = outcome.result.to_document()
    document["headline"] = headline(outcome)
    document["explanation"] = outcome.explanation or None
    document["error"] = outcome.problem or None
    return document
