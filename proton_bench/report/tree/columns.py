"""The columns of values before the names of a tree, as many as a terminal has room for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from proton_bench.analysis.metrics.values import MetricValues
from proton_bench.report.words.edge import fitting
from proton_bench.support.text import visible
from proton_bench.support.units import number_texts

__all__ = ["TreeColumn", "columns_of", "fitting_columns", "width_of"]

# Least room for names with their guides before headings are shortened, and before columns are
# removed.
_COMFORT = 40
_LEAST = 22
_TITLE = 16
_GAP = 2
_MAX_TEXT = 40
_LARGE = 1e6  # from here on values with intervals have an exponent


@dataclass(frozen=True, slots=True)
class TreeColumn:
    """One metric of all rows as text.

    Attributes:
        title: The heading.
        short: A shorter heading, without parts that the legend explains.
        texts: A text for each row.
    """

    title: str
    short: str
    texts: Sequence[str]

    @property
    def width(self) -> int:
        """Terminal columns for the heading and every text."""
        return max(cell_len(self.title), self.body)

    @property
    def body(self) -> int:
        """Terminal columns for every text."""
        # Numbers are ASCII; only names of metrics and texts may be wide.
        if all(map(str.isascii, self.texts)):
            return max(map(len, self.texts), default=0)
        return max(map(cell_len, self.texts), default=0)

    def titled(self, title: str) -> TreeColumn:
        """Return the column under another heading."""
        return TreeColumn(title, title, self.texts)

    @property
    def heading(self) -> str:
        """The title, padded on the left to the width."""
        return " " * (self.width - cell_len(self.title)) + self.title

    def aligned(self) -> list[str]:
        """Return the texts, padded on the left to the same width."""
        width = self.width
        if all(map(str.isascii, self.texts)):
            return [text.rjust(width) for text in self.texts]
        return [" " * (width - cell_len(text)) + text for text in self.texts]


def columns_of(metrics: Sequence[MetricValues]) -> list[TreeColumn]:
    """Return a column for each metric."""
    return [
        TreeColumn(visible(metric.title), visible(metric.name), _texts(metric))
        for metric in metrics
    ]


def fitting_columns(columns: Sequence[TreeColumn], edge: int | None) -> list[TreeColumn]:
    """Return the columns that leave room for names.

    If the room is too small, headings are shortened, then long ones are cut, then columns are
    removed, the last one first. The first always stays.
    """
    if edge is None or width_of(columns) + _COMFORT <= edge:
        return list(columns)
    shown = [column.titled(column.short) for column in columns]
    if width_of(shown) + _LEAST > edge:
        shown = [column.titled(fitting(column.short, _TITLE)) for column in shown]
    while len(shown) > 1 and width_of(shown) + _LEAST > edge:
        del shown[-1]
    return shown


def width_of(columns: Sequence[TreeColumn]) -> int:
    """Return the width of all columns with the gaps after them."""
    return sum(column.width + _GAP for column in columns)


def _texts(metric: MetricValues) -> list[str]:
    values = metric.to_list()
    if not metric.is_number:
        return ["-" if value is None else visible(_text(value), _MAX_TEXT) for value in values]
    if metric.halves is not None:
        pairs = zip(values, metric.halves.tolist(), strict=True)
        return ["-" if value is None else _interval(value, half) for value, half in pairs]
    if metric.name.endswith("/%"):
        return ["-" if value is None else f"{value:.1f}" for value in values]
    return number_texts(values)


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
