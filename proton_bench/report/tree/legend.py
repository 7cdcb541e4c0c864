"""The legend below a tree: meanings of columns, colours, and what is not shown."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from rich.console import Console
from rich.segment import Segment
from rich.style import Style

from proton_bench.analysis.metrics.values import MetricValues
from proton_bench.analysis.view.tree import MetricTree
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.report.text.theme import BANDS, DIM, HEADING
from proton_bench.report.words.edge import prose
from proton_bench.support.text import visible
from proton_bench.support.units import count_text, number_texts

__all__ = ["largest_of", "legend"]

_MARK_WIDTH = len("  # ")

_MEANINGS = {
    Aggregation.INCLUSIVE: "of the row and all rows below it",
    Aggregation.EXCLUSIVE: "of the row alone",
    Aggregation.PROPERTY: "property of the row",
}


def legend(console: Console, tree: MetricTree, *, mark: str, edge: int | None) -> Iterator[Segment]:
    """Yield the lines of the legend; colours are explained only if they are shown.

    Args:
        console: Where it is shown.
        tree: The rows above it.
        mark: The character that shows each colour.
        edge: Width of the terminal, None for none.
    """
    for line, style in _lines(tree, mark, with_bands=console.color_system is not None):
        yield from _shown(console, line, style, edge=edge)


def largest_of(metric: MetricValues) -> float:
    """Return the largest absolute value, 0 if there is none."""
    values = np.abs(metric.values[metric.valid].astype(np.float64))
    return float(values.max()) if values.size else 0.0


_Line = tuple[str, Style | None]


def _lines(tree: MetricTree, mark: str, *, with_bands: bool) -> Iterator[_Line]:
    if tree.metrics or tree.cut:
        yield "", None
        yield "Legend", HEADING
    for metric in tree.metrics:
        yield f"  {visible(metric.title)}: {metric.meaning or _MEANINGS[metric.aggregation]}", None
    first = tree.metrics[0] if tree.metrics else None
    if with_bands and first is not None and first.is_number:
        yield from _band_lines(first, mark)
    if tree.cut:
        deeper = count_text(tree.cut, "deeper row is", "deeper rows are")
        yield f"  {deeper} not shown; -d shows more", DIM


def _band_lines(metric: MetricValues, mark: str) -> Iterator[_Line]:
    largest, high = largest_of(metric), 1.0
    bounds = number_texts([largest * band.low for band in BANDS] + [largest])
    for low, band, above in zip(bounds, BANDS, [bounds[-1], *bounds], strict=False):
        shares = f"({band.low:.0%} to {high:.0%} of {visible(metric.name)})"
        yield f"  {mark} {low} to {above} {shares}", band.style
        high = band.low


def _shown(
    console: Console, line: str, style: Style | None, *, edge: int | None
) -> Iterator[Segment]:
    """Yield a line of the legend; in a line about colours only the mark is coloured."""
    is_band = style is not None and style not in (HEADING, DIM)
    first, *rest = prose(console, line, None if is_band else style, edge=edge)
    if is_band:
        yield Segment(first.text[:_MARK_WIDTH], style)
        first = Segment(first.text[_MARK_WIDTH:])
    yield first
    yield from rest
