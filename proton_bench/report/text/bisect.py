"""A search for the first slower revision, on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.segment import Segment
from rich.style import Style

from proton_bench.gate.bisect.result import BisectResult, BisectVerdict, State
from proton_bench.report.text.theme import DIM, HEADING, WARNING
from proton_bench.report.words.bisect_words import bisect_headline, bisect_lines, tested_texts
from proton_bench.report.words.edge import fitting

__all__ = ["BisectReport"]

_FOUND = Style(color="green", bold=True)
_STYLES = {State.BAD: Style(color="red"), State.GOOD: None, State.SKIPPED: DIM}
_WORD = 6  # the longest of the words in front of lines


@dataclass(frozen=True, slots=True)
class BisectReport:
    """A rich renderable of a search.

    Attributes:
        result: What to show.
    """

    result: BisectResult

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield the lines; only on a terminal they are cut."""
        edge = options.max_width if console.file.isatty() else None
        style = _FOUND if self.result.verdict is BisectVerdict.FOUND else WARNING
        yield Segment(f"{bisect_headline(self.result)}\n", style)
        for word, text in bisect_lines(self.result):
            yield Segment(f"{_cut(f'{word.rjust(_WORD)}  {text}', edge)}\n")
        yield from self._tested(edge)

    def _tested(self, edge: int | None) -> Iterator[Segment]:
        cells = [tested_texts(each) for each in self.result.tested]
        if not cells:
            return
        yield Segment("\nMeasured, oldest first\n", HEADING)
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
