"""Columns of texts before the names of rows, as many as a terminal has room for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from rich.cells import cell_len
from rich.segment import Segment

from proton_bench.analysis.accounting.calls import CALLS
from proton_bench.analysis.view.select import MetricTree
from proton_bench.model.arrays import Floats
from proton_bench.report.words.edge import DIM, HEADING, fitting, fitting_name
from proton_bench.support.text import visible
from proton_bench.support.units import number_texts

if TYPE_CHECKING:
    from rich.style import Style

    from proton_bench.analysis.metrics.values import MetricValues


# Least room for a name before columns are removed.
_LEAST_NAME = 24
# In a tree, whose names have guides: least room before headings are shortened, and before columns
# are removed.
_COMFORT = 40
_LEAST_IN_TREE = 22
_TITLE = 16
_GAP = 2
_MAX_TEXT = 40
_FOUR_DIGITS = 1000.0
_LARGE = 1e6  # from here on values with intervals have an exponent


@dataclass(frozen=True, slots=True)
class Column:
    """One value of all rows as text.

    Attributes:
        title: Its heading.
        texts: One text per shown row.
        worth: Order in which columns are removed without room, greatest first.
        unit: Unit of all texts, "" for none.
        short: A shorter title, without parts that the legend of a tree explains.
        is_text: Whether texts begin at the left edge; numbers end at the right one.
    """

    title: str
    texts: Sequence[str]
    worth: int = 0
    unit: str = ""
    short: str = ""
    is_text: bool = False

    @property
    def heading(self) -> str:
        """The title with the unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    @property
    def width(self) -> int:
        """Terminal columns for the heading and every text."""
        # Numbers are ASCII; only names of metrics and texts may be wide.
        lengths = map(len if all(map(str.isascii, self.texts)) else cell_len, self.texts)
        return max(cell_len(self.heading), *lengths, 0)

    def aligned(self) -> list[str]:
        """Return the heading and the texts, padded to the same width."""
        width = self.width
        padded = []
        for text in (self.heading, *self.texts):
            padding = " " * (width - cell_len(text))
            padded.append(text + padding if self.is_text else padding + text)
        return padded


class Table:
    """The most important columns that leave room for names.

    Before a column is removed, only the first column of a unit names it.

    Args:
        columns: All columns.
        edge: Width of the terminal; None is a pipe or file, which gets all.
        least: Terminal columns that names get before columns are removed.

    Attributes:
        columns: Those that fit.
        hidden: How many do not.
        width: Terminal columns before names.
        room: Terminal columns for a name, None for any number.
    """

    def __init__(
        self, columns: Sequence[Column], edge: int | None, least: int = _LEAST_NAME
    ) -> None:
        self.columns = list(columns) if edge is None else _most_important(columns, edge - least)
        self.hidden = len(columns) - len(self.columns)
        self.width = width_of(self.columns)
        self.room = None if edge is None else max(edge - self.width, least)
        self._cells = [column.aligned() for column in self.columns]

    def heading(self, name: str) -> Iterator[Segment]:
        """Yield the first line, in which ``name`` stands above the names of rows."""
        for cells in self._cells:
            yield Segment(f"{cells[0]}  ", HEADING)
        yield Segment(f"{name}\n", HEADING)

    def values(
        self, row: int, style: Style | None = DIM, of: Mapping[str, Style | None] | None = None
    ) -> Iterator[Segment]:
        """Yield the values of a row.

        Args:
            row: Its place.
            style: Style of the values.
            of: Styles of single columns, by title.
        """
        of = of or {}
        for column, cells in zip(self.columns, self._cells, strict=True):
            yield Segment(f"{cells[row + 1]}  ", of.get(column.title, style))

    def fitting(self, name: str) -> str:
        """Return a name, cut if it has no room."""
        return name if self.room is None else fitting_name(name, self.room)


def _most_important(every: Sequence[Column], room: int) -> list[Column]:
    left, shown = list(every), list(every)
    while width_of(shown) > room:
        short = _with_units_once(left)
        if short != shown:
            shown = short
            continue
        least = max(left, key=lambda column: column.worth)
        if not least.worth:
            break
        left = [column for column in left if column.worth != least.worth]
        shown = _with_units_once(left)
    return shown


def _with_units_once(columns: Sequence[Column]) -> list[Column]:
    units: set[str] = set()
    shown = []
    for column in columns:
        shown.append(replace(column, unit="") if column.unit in units else column)
        units.add(column.unit)
    return shown


def width_of(columns: Sequence[Column]) -> int:
    """Return the width of all columns with the gaps after them."""
    return sum(column.width + _GAP for column in columns)


# -- metrics of a tree ---------------------------------------------------------------------------
def columns_of(metrics: Sequence[MetricValues]) -> list[Column]:
    """Return a column for each metric."""
    return [
        Column(visible(metric.title), _texts(metric), short=visible(metric.name))
        for metric in metrics
    ]


def shortened(columns: Sequence[Column], edge: int | None) -> list[Column]:
    """Return the columns that leave room for names with guides.

    If the room is too small, headings are shortened, then long ones are cut, then columns are
    removed, the last one first. The first always stays.
    """
    if edge is None or width_of(columns) + _COMFORT <= edge:
        return list(columns)
    shown = [replace(column, title=column.short) for column in columns]
    if width_of(shown) + _LEAST_IN_TREE > edge:
        shown = [replace(column, title=fitting(column.short, _TITLE)) for column in shown]
    while len(shown) > 1 and width_of(shown) + _LEAST_IN_TREE > edge:
        del shown[-1]
    return shown


def _texts(metric: MetricValues) -> list[str]:
    values = metric.to_list()
    if not metric.is_number:
        return ["-" if value is None else visible(_text(value), _MAX_TEXT) for value in values]
    if metric.halves is not None:
        pairs = zip(values, metric.halves.tolist(), strict=True)
        return ["-" if value is None else _interval(value, half) for value, half in pairs]
    if metric.name.endswith("/%"):
        return ["-" if value is None else f"{value:.1f}" for value in values]
    if metric.name == CALLS:
        return count_texts(values)
    return number_texts(values)


def count_texts(values: Iterable[float | None]) -> list[str]:
    """Return numbers of calls; of mean steps they may have fractions."""
    return ["-" if value is None else _count(value) for value in values]


def _count(value: float) -> str:
    is_whole = value >= _FOUR_DIGITS or float(value).is_integer()
    return f"{value:.0f}" if is_whole else f"{value:.3g}"


def _interval(value: float, half: float) -> str:
    """Return a value with half of its interval; ASCII, because any terminal may show it."""
    largest = max(abs(value), half)
    if _LARGE <= largest < math.inf:
        power = 3 * int(math.log10(largest) / 3)
        shown, off = value / 10.0**power, half / 10.0**power
        digits = min(max(1 - math.floor(math.log10(off)), 0), 3) if off > 0 else 3
        return f"{shown:.{digits}f}e{power} +-{off:.{digits}f}e{power}"
    digits = 1 if half < 1.0 else 0
    return f"{value:.{digits}f} +-{half:.{digits}f}"


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(f"{element:.6g}" for element in value) + "]"
    return str(value)


# -- bars ------------------------------------------------------------------------------------------
BAR_WIDTH = 10
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_HEIGHTS, _ASCII_HEIGHTS = "▁▂▃▄▅▆▇█", "_.-=+*%#"
_SPARK_WIDTH = 24
# Noise must not fill the height of a line.
_LEAST_RANGE = 0.05


def bar_texts(tree: MetricTree, *, ascii_only: bool = False) -> list[str]:
    """Return one bar per row, `BAR_WIDTH` characters each, full for the largest value.

    Args:
        tree: Rows; the absolute value of their first metric is drawn.
        ascii_only: Draw with ``#``.
    """
    if not tree.metrics or not tree.metrics[0].is_number:
        return []
    first = tree.metrics[0]
    sizes = np.abs(np.where(first.valid, first.values, 0).astype(np.float64))
    sizes = np.where(np.isfinite(sizes), sizes, 0.0)
    largest = float(sizes.max(initial=0.0))
    shares = sizes / largest if largest > 0 else sizes
    return [bar_text(share, ascii_only=ascii_only) for share in shares.tolist()]


def bar_text(share: float, *, width: int = BAR_WIDTH, ascii_only: bool = False) -> str:
    """Return a bar of this width, full for a share of 1.

    Args:
        share: From 0 to 1.
        width: Characters.
        ascii_only: Draw with ``#``.
    """
    if ascii_only:
        return ("#" * round(share * width)).ljust(width)
    whole, rest = divmod(round(share * width * 8), 8)
    return (_EIGHTHS[8] * whole + (_EIGHTHS[rest] if rest else "")).ljust(width)


def sparkline(values: Floats, *, width: int = _SPARK_WIDTH, ascii_only: bool = False) -> str:
    """Return the values as a line of bars, on a logarithmic scale.

    Args:
        values: Positive values in order of time.
        width: Most characters; more points are joined by their medians.
        ascii_only: Draw with ASCII characters.
    """
    bars = _ASCII_HEIGHTS if ascii_only else _HEIGHTS
    logs = np.log(values)
    edges = np.linspace(0, len(logs), min(width, len(logs)) + 1).round().astype(int)
    parts = [logs[start:end] for start, end in pairwise(edges)]
    levels = np.array([np.median(part) for part in parts])
    low, high = float(levels.min()), float(levels.max())
    spare = max(_LEAST_RANGE - (high - low), 0.0) / 2.0
    shares = (levels - low + spare) / (high - low + 2.0 * spare)
    return "".join(bars[min(int(share * len(bars)), len(bars) - 1)] for share in shares)
