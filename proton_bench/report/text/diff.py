"""A comparison on the terminal: a headline, then the rows by contribution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.segment import Segment
from rich.style import Style

from proton_bench.analysis.compare.compare import Comparison
from proton_bench.analysis.compare.pairing import RowState
from proton_bench.analysis.compare.ranking import Ranking
from proton_bench.analysis.metrics.formula import Divisor, parse_formula
from proton_bench.analysis.metrics.occupancy import OCCUPANCY
from proton_bench.errors import MetricError
from proton_bench.report.text.theme import DIM, HEADING, WARNING
from proton_bench.report.words.columns import Column, Table
from proton_bench.report.words.diff_rows import columns, footer, meanings, names, notes
from proton_bench.report.words.diff_summary import (
    calls_line,
    cost_lines,
    cost_warning,
    headline,
    loss_lines,
    side_lines,
)
from proton_bench.report.words.edge import (
    chain_mark,
    fitting,
    fitting_path,
    prose,
    without_folder,
)
from proton_bench.support.text import visible
from proton_bench.support.units import count_text

__all__ = ["DiffReport"]

_WORSE = Style(color="red")
_MUCH_WORSE = Style(color="red", bold=True)
_BETTER = Style(color="green")
_MUCH_BETTER = Style(color="green", bold=True)
_NOTE = Style(color="cyan")
# A change of this share of the largest one is printed bold.
_MUCH = 0.5
_MAX_INDENT = 64


@dataclass(frozen=True, slots=True, eq=False)
class DiffReport:
    """A rich renderable of a comparison.

    Attributes:
        comparison: What to show.
        ranking: Which rows, in which order.
    """

    comparison: Comparison
    ranking: Ranking

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield the lines; only on a terminal columns and names are cut."""
        edge = options.max_width if console.file.isatty() else None
        yield from self._summary(console, edge)
        table = Table(columns(self.comparison, self.ranking), edge)
        yield from table.heading("name")
        yield from self._rows(table, edge, chain_mark(options))
        yield from self._legend(table.columns, hidden=table.hidden)

    def _summary(self, console: Console, edge: int | None) -> Iterator[Segment]:
        yield Segment(f"{headline(self.comparison)}\n", HEADING)
        for word, text in side_lines(self.comparison):
            yield Segment(f"{word.rjust(4)}  {text}\n", DIM)
        for word, text in cost_lines(self.comparison):
            yield Segment(f"{word.rjust(4)}  {text}\n", DIM)
        scaled = calls_line(self.comparison)
        if scaled is not None:
            yield from prose(console, scaled, None, edge=edge)
        warning = cost_warning(self.comparison)
        if warning is not None:
            yield Segment(f"{warning}\n", WARNING)
        for loss in loss_lines(self.comparison):
            yield from prose(console, loss, WARNING, edge=edge)
        yield Segment("\n")

    def _rows(self, table: Table, edge: int | None, mark: str) -> Iterator[Segment]:
        labels = names(self.comparison, self.ranking)
        lines = zip(self.ranking.rows, self.ranking.depths, labels, strict=True)
        for place, (row, depth, label) in enumerate(lines):
            changed = self._style(row)
            yield from table.values(place, of={"change": changed, "%": changed})
            indent = "  " * min(depth, _MAX_INDENT) + (f"[{depth}] " if depth > _MAX_INDENT else "")
            said = "  ".join(notes(self.comparison, row))
            state = 0 if self.comparison.tree.states[row] == RowState.MATCHED else _first_word(said)
            name = mark.join(label)
            if edge is not None and table.room is not None:
                room = table.room - len(indent)
                if cell_len(name) + 2 + cell_len(said) > room:
                    left = room - state if 2 * state <= room else room
                    name = fitting_path([without_folder(each) for each in label], left, mark)
                said = fitting(said, edge - table.width - len(indent) - cell_len(name) - 2)
            yield Segment(f"{indent}{name}")
            if said:
                yield Segment(f"  {said}", _NOTE)
            yield Segment("\n")

    def _style(self, row: int) -> Style:
        values = self.comparison.inclusive
        change = float(values.change[row])
        if change == 0 or not (values.base_valid[row] or values.new_valid[row]):
            return DIM
        largest = max(abs(float(values.change[each])) for each in self.ranking.rows[1:2] or (0,))
        is_much = abs(change) >= _MUCH * largest
        if (change > 0) != _more_is_better(self.comparison.measure.name):
            return _MUCH_WORSE if is_much else _WORSE
        return _MUCH_BETTER if is_much else _BETTER

    def _legend(self, shown: Sequence[Column], *, hidden: int) -> Iterator[Segment]:
        titles = {column.title for column in shown}
        yield Segment("\nLegend\n", HEADING)
        yield Segment(f"  {visible(self.comparison.measure.name)}, by {self.comparison.by}\n")
        for title, meaning in meanings(self.comparison):
            if title in titles:
                yield Segment(f"  {title}: {meaning}\n")
        for line in footer(self.comparison, self.ranking):
            yield Segment(f"  {line}\n", DIM)
        if hidden:
            what = count_text(hidden, "column does", "columns do")
            yield Segment(f"  {what} not fit; a pipe or file gets all\n", DIM)


def _first_word(text: str) -> int:
    """Return the width of the first word with blanks before it and an ellipsis after it."""
    word, _, more = text.partition(" ")
    return 2 + cell_len(word) + bool(more)


def _more_is_better(name: str) -> bool:
    if name.strip().lower() in ("util", OCCUPANCY):
        return True
    try:
        formula = parse_formula(name)
    except MetricError:
        return False
    return formula is not None and formula.divisor is Divisor.SECONDS
