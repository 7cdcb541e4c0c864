"""A gate as Markdown of limited size, for comments of pull requests and job summaries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from proton_bench.gate.verdict.result import GateRow, Outcome
from proton_bench.report.ci.diff_markdown import escaped
from proton_bench.report.words.gate_words import (
    columns,
    headline,
    notes,
    shown_row,
    side_lines,
    structure_text,
    why,
)
from proton_bench.support.units import count_text

__all__ = ["COMMENT_BYTES", "MARK", "SUMMARY_BYTES", "gate_markdown"]

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
    left = [(page.add_table(_table(outcome.telling_rows, outcome)), "row", "rows")]
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
                page.add_table(_table(calm, outcome)),
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


def _table(rows: Sequence[GateRow], outcome: Outcome) -> list[str]:
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
