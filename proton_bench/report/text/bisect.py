"""A search for the first slower revision: on the terminal and as a JSON document."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.segment import Segment
from rich.style import Style

from proton_bench.gate.bisect import BisectResult, BisectVerdict, Candidate, Measurement, State
from proton_bench.gate.verdict.result import GateRow, Outcome
from proton_bench.report.text.gate import gate_document
from proton_bench.report.words.edge import DIM, HEADING, WARNING, edge_of, fitting
from proton_bench.report.words.gate import headline, row_text, structure_text
from proton_bench.support.text import visible
from proton_bench.support.units import count_text, percent_text

_FOUND = Style(color="green", bold=True)
_STYLES = {State.BAD: Style(color="red"), State.GOOD: None, State.SKIPPED: DIM}
_WORD = 6  # the longest of the words in front of lines
_MOST_TEXT = 200
_MOST_SHOWN = 10
_MOST_PROBLEM = 600
# A revision before the answer with so much of its change and an interval beside 0 is slower, too.
_EARLIER = 0.25


@dataclass(frozen=True, slots=True)
class BisectReport:
    """A rich renderable of a search.

    Attributes:
        result: What to show.
    """

    result: BisectResult

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield the lines; only on a terminal they are cut."""
        edge = edge_of(console, options)
        style = _FOUND if self.result.verdict is BisectVerdict.FOUND else WARNING
        yield Segment(f"{_headline(self.result)}\n", style)
        for word, text in _lines(self.result):
            yield Segment(f"{_cut(f'{word.rjust(_WORD)}  {text}', edge)}\n")
        yield from self._tested(edge)

    def _tested(self, edge: int | None) -> Iterator[Segment]:
        cells = [_cells(each) for each in self.result.tested]
        if not cells:
            return
        heading = "Measured against GOOD, oldest first, with 90 % intervals"
        yield Segment(f"\n{_cut(heading, edge)}\n", HEADING)
        wide = [max(cell_len(line[place]) for line in cells) for place in range(2)]
        for line, tested in zip(cells, self.result.tested, strict=True):
            padded = (
                text + " " * (width - cell_len(text))
                for text, width in zip(line, wide, strict=False)
            )
            text = _cut("  ".join(["", *padded, line[2]]), edge)
            yield Segment(f"{text}\n", _STYLES.get(tested.state, WARNING))


def _cut(line: str, edge: int | None) -> str:
    return line if edge is None else fitting(line, edge)


def _headline(result: BisectResult) -> str:
    """Return one line: the verdict and the revision."""
    return f"{result.verdict}: {_said(result)}"


def _said(result: BisectResult) -> str:
    if result.verdict is BisectVerdict.FOUND:
        return f"{_revision_text(result.candidates[0])} is the first slower revision"
    if result.verdict is BisectVerdict.RANGE:
        count = count_text(len(result.candidates), "revision")
        return f"one of {count} is the first slower one; the others do not run"
    if result.problem:
        return visible(result.problem, _MOST_PROBLEM)
    outcome = Outcome(result.proof)
    undecided = [row for row in result.proof.rows if row.is_undecided]
    if result.verdict is BisectVerdict.INCONCLUSIVE and undecided:
        worst = max(undecided, key=lambda row: (math.isfinite(row.change), row.change))
        more = f" and {len(undecided) - 1} more" if len(undecided) > 1 else ""
        needed = f", for instance --runs {worst.pairs_needed}" if worst.pairs_needed > 0 else ""
        return f"{row_text(worst, outcome)}{more} may be slower; run more pairs{needed}"
    return headline(outcome).partition(": ")[2]


def _lines(result: BisectResult) -> Iterator[tuple[str, str]]:
    """Yield what follows the headline, each with the word in front of it."""
    if result.verdict is BisectVerdict.RANGE:
        for each in result.candidates[:_MOST_SHOWN]:
            yield "maybe", _revision_text(each)
        if len(result.candidates) > _MOST_SHOWN:
            yield "", f"and {len(result.candidates) - _MOST_SHOWN} more"
    if result.verdict is BisectVerdict.FOUND:
        first = result.candidates[0]
        if first.author or first.date:
            yield "by", visible(", ".join(each for each in (first.author, first.date) if each))
        found = result.of(first)
        if found is not None and found.pairs:
            yield "slower", f"{visible(result.path, 400)}: {_change_text(found)}"
        yield from _parents(result)
        yield from _earlier(result)
    if result.candidates:
        yield "proof", _proof_text(result)
        yield (
            "",
            f"{count_text(result.pairs, 'pair')} for {count_text(result.revisions, 'revision')}",
        )


def _parents(result: BisectResult) -> Iterator[tuple[str, str]]:
    """Yield what the revisions just before the first slower one measured."""
    for each in result.parents:
        name = visible(each.short)
        found = result.of(each)
        if each == result.good:
            yield "before", f"{name}, the good revision"
        elif found is not None:
            yield "before", f"{name}: {_measured_text(found)}"


def _earlier(result: BisectResult) -> Iterator[tuple[str, str]]:
    """Yield how to find what made the revisions before the answer slower, if they are."""
    first = result.of(result.candidates[0])
    for each in result.parents:
        found = result.of(each)
        if first is None or found is None or not (first.pairs and found.pairs):
            continue
        if found.low * found.high > 0.0 and found.change / first.change > _EARLIER:
            name = visible(each.short)
            yield (
                "note",
                f"{name} is slower than GOOD already; a search from {visible(result.good.short)} "
                "to it would find why",
            )


def _proof_text(result: BisectResult) -> str:
    outcome = Outcome(result.proof)
    row = _proven(result)
    if row is not None:
        return row_text(row, outcome)
    failing = [each for each in outcome.structure if each.fails]
    return structure_text(failing[0], outcome) if failing else headline(outcome)


def _proven(result: BisectResult) -> GateRow | None:
    rows = result.proof.regressions
    texts = result.proof.texts
    for row in rows:
        path = " > ".join(texts.get(name, name) for name in row.path) or "ROOT"
        if (path, row.metric) == (result.path, result.metric):
            return row
    return None


def _revision_text(candidate: Candidate) -> str:
    return visible(candidate.text, _MOST_TEXT)


def _change_text(tested: Measurement) -> str:
    """Return the change of a revision: ``+3.1 % (+2.8 % to +3.4 %), 2 pairs``."""
    if not math.isfinite(tested.change):
        return "-"
    ends = f"({percent_text(tested.low)} to {percent_text(tested.high)})"
    return f"{percent_text(tested.change)} {ends}, {count_text(tested.pairs, 'pair')}"


def _cells(tested: Measurement) -> tuple[str, str, str]:
    """Return the cells of a revision that was run: its state, what was measured, and itself."""
    revision = _revision_text(tested.revision)
    if tested.pairs:
        return tested.state.value, _change_text(tested), revision
    return tested.state.value, "-", f"{revision}; {visible(tested.reason, _MOST_TEXT)}"


def _measured_text(tested: Measurement) -> str:
    return _change_text(tested) if tested.pairs else visible(tested.reason, _MOST_TEXT)


# -- other forms -----------------------------------------------------------------------------------
def bisect_document(result: BisectResult) -> dict[str, Any]:
    """Return what ``proton bisect --json`` writes; ``proof`` is a document of `proton gate`."""
    document = result.to_document()
    document["proof"] = gate_document(Outcome(result.proof))
    return document
