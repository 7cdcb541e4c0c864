"""A call-path tree as text: one line per row, metrics in columns before the name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from proton_bench.analysis.derive import MetricValues
from proton_bench.analysis.select import MetricTree
from proton_bench.profile import Aggregation
from proton_bench.report.bars import BAR_WIDTH, bar_texts
from proton_bench.report.names import FrameFormat, format_name, visible
from proton_bench.report.theme import BANDS, DIM, HEADING, bands_of
from proton_bench.report.units import count_text, number_texts

__all__ = ["MAX_INDENT", "SortedReport", "TreeReport", "print_report"]

# Deeper rows say how deep they are instead of moving to the right: a line stays readable, and the
# text of a tree of n rows stays linear in n.
MAX_INDENT = 64

# Narrower terminals have no room for a bar beside a name that can be read.
_ROOM_FOR_BARS = 44

_MEANINGS = {
    Aggregation.INCLUSIVE: "of the row and all rows below it",
    Aggregation.EXCLUSIVE: "of the row alone",
    Aggregation.PROPERTY: "property of the row",
}


@dataclass(frozen=True, slots=True)
class _Guides:
    """What connects a row with its parent: below an ancestor, at a row, as last child."""

    through: str
    blank: str
    fork: str
    last: str
    mark: str

    @classmethod
    def of(cls, options: ConsoleOptions) -> _Guides:
        if options.ascii_only:
            return cls("|  ", "   ", "|- ", "`- ", "#")
        return cls("│  ", "   ", "├─ ", "└─ ", "█")


@dataclass(frozen=True, slots=True, eq=False)
class TreeReport:
    """A rich renderable of a tree, with a legend.

    Attributes:
        tree: What to show.
        frames: Form of Python frames' names.
        bars: Also draw the first metric of each row, where the terminal is wide enough.
        flat: The rows below the root are a table, and the root is their total.
    """

    tree: MetricTree
    frames: FrameFormat = FrameFormat.FULL
    bars: bool = False
    flat: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield the lines; names are cut only where a terminal has an edge."""
        guides = _Guides.of(options)
        cells, width = _cells(self.tree.metrics)
        # Not is_terminal: FORCE_COLOR makes a pipe colourful, and must not make it lose text.
        edge = options.max_width if console.file.isatty() else None
        bars = bar_texts(self.tree, ascii_only=options.ascii_only) if self.bars else []
        if bars and (edge is None or edge - width >= _ROOM_FOR_BARS):
            cells, width = [*cells, bars], width + BAR_WIDTH + 2
        yield from _heading(self.tree.metrics, cells)
        cut = 0
        blank = ("",) if cells else ()
        lines = zip(
            _row_bands(self.tree),
            zip(*cells, strict=True) if cells else [()] * len(self.tree),
            [""] * len(self.tree) if self.flat else _prefixes(self.tree, guides),
            _labels(self.tree, self.frames),
            strict=True,
        )
        for band, values, prefix, name in lines:
            shown = name if edge is None else _fitting(name, edge - width - len(prefix))
            cut += shown is not name
            # As few segments as possible: each costs more than the rest of its line.
            if values:
                yield Segment(values[0], BANDS[band].style)
            yield Segment("  ".join((*blank, *values[1:], prefix)), DIM)
            yield Segment(f"{shown}\n")
        yield from _legend(self.tree, guides, with_bands=console.color_system is not None)
        if cut:
            what = "name is" if cut == 1 else "names are"
            yield Segment(f"{cut} {what} cut at the edge; a pipe or file gets them whole\n", DIM)


@dataclass(frozen=True, slots=True, eq=False)
class SortedReport:
    """A rich renderable of all rows below the root, largest value of the first metric first."""

    tree: MetricTree
    frames: FrameFormat = FrameFormat.FULL

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield one line per row that has a value."""
        del console, options
        if not self.tree.metrics:
            return
        first = self.tree.metrics[0]
        cells, _ = _cells(self.tree.metrics)
        yield Segment(f"Sorted kernels by metric {visible(first.title)}\n", HEADING)
        labels = list(_labels(self.tree, self.frames))
        for row in sorted_rows(first):
            values = "  ".join(column[row] for column in cells)
            yield Segment(f"{values}  {labels[row]}\n")


def sorted_rows(metric: MetricValues) -> list[int]:
    """Return the rows below the root that have a value, largest first, equal ones in tree order."""
    rows = np.flatnonzero(metric.valid[1:]) + 1
    if not metric.is_number:
        return sorted(rows.tolist(), key=lambda row: str(metric.values[row]))
    ordered: list[int] = rows[np.argsort(-metric.values[rows], kind="stable")].tolist()
    return ordered


def print_report(console: Console, *reports: Any) -> None:
    """Print renderables one after the other, without wrapping or cutting lines."""
    for report in reports:
        console.print(report, crop=False, soft_wrap=True, end="")


# -- columns -------------------------------------------------------------------------------------
def _cells(metrics: Sequence[MetricValues]) -> tuple[list[list[str]], int]:
    """Return the right-aligned texts of each metric and the width of all of them."""
    columns, total = [], 0
    for metric in metrics:
        values = metric.to_list()
        if metric.is_number:
            texts = number_texts(values)
        else:
            texts = ["-" if value is None else visible(_text(value), 40) for value in values]
        width = max(len(visible(metric.title)), *map(len, texts))
        columns.append([text.rjust(width) for text in texts])
        total += width + 2
    return columns, total


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(f"{element:.6g}" for element in value) + "]"
    return str(value)


def _heading(metrics: Sequence[MetricValues], cells: Sequence[Sequence[str]]) -> Iterator[Segment]:
    for metric, column in zip(metrics, cells, strict=False):
        yield Segment(f"{visible(metric.title).rjust(len(column[0]))}  ", HEADING)
    if len(cells) > len(metrics):
        yield Segment(" " * (BAR_WIDTH + 2))
    yield Segment("name\n", HEADING)


def _largest(metric: MetricValues) -> float:
    values = np.abs(metric.values[metric.valid].astype(np.float64))
    return float(values.max()) if values.size else 0.0


def _row_bands(tree: MetricTree) -> list[int]:
    if not tree.metrics or not tree.metrics[0].is_number:
        return [len(BANDS) - 1] * len(tree)
    first = tree.metrics[0]
    return bands_of(np.where(first.valid, first.values, 0), _largest(first))


# -- names ---------------------------------------------------------------------------------------
def _labels(tree: MetricTree, frames: FrameFormat) -> Iterable[str]:
    """Yield what to call each row; the device is named where there are several."""
    texts = [visible(format_name(text, frames)) for text in tree.strings]
    several = len(set(tree.devices) - {""}) > 1
    for frame, device in zip(tree.frames.tolist(), tree.devices, strict=True):
        yield f"{texts[frame]} [{visible(device)}]" if several and device else texts[frame]


def _prefixes(tree: MetricTree, guides: _Guides) -> Iterator[str]:
    """Yield the lines that connect each row with its parent."""
    parents = tree.parents.tolist()
    last_child = [0] * len(parents)
    for row in range(1, len(parents)):
        last_child[parents[row]] = row
    # What stands before the children of the row last seen at each depth.
    inner = [""]
    depths = tree.depths().tolist()
    for row, depth in enumerate(depths):
        if depth == 0:
            yield ""
            continue
        is_last = last_child[parents[row]] == row
        if depth > MAX_INDENT:
            yield f"{inner[MAX_INDENT - 1]}{guides.last if is_last else guides.fork}[{depth}] "
            continue
        yield inner[depth - 1] + (guides.last if is_last else guides.fork)
        del inner[depth:]
        inner.append(inner[depth - 1] + (guides.blank if is_last else guides.through))


def _fitting(name: str, width: int) -> str:
    """Return the name, cut with an ellipsis where it is wider than the terminal leaves room."""
    room = max(width, 16)
    if len(name) <= room // 2 or cell_len(name) <= room:
        return name
    return set_cell_size(name, room - 1).rstrip() + "…"


# -- legend --------------------------------------------------------------------------------------
def _legend(tree: MetricTree, guides: _Guides, *, with_bands: bool) -> Iterator[Segment]:
    if tree.metrics or tree.cut:
        yield Segment("\nLegend\n", HEADING)
    for metric in tree.metrics:
        yield Segment(
            f"  {visible(metric.title)}: {metric.meaning or _MEANINGS[metric.aggregation]}\n"
        )
    first = tree.metrics[0] if tree.metrics else None
    if with_bands and first is not None and first.is_number:
        yield from _band_lines(first, guides)
    if tree.cut:
        deeper = count_text(tree.cut, "deeper row is", "deeper rows are")
        yield Segment(f"  {deeper} not shown; -d shows more\n", DIM)


def _band_lines(metric: MetricValues, guides: _Guides) -> Iterator[Segment]:
    largest, high = _largest(metric), 1.0
    bounds = number_texts([largest * band.low for band in BANDS] + [largest])
    for low, band, above in zip(bounds, BANDS, [bounds[-1], *bounds], strict=False):
        yield Segment(f"  {guides.mark} ", band.style)
        yield Segment(
            f"{low} to {above} ({band.low:.0%} to {high:.0%} of {visible(metric.name)})\n"
        )
        high = band.low
