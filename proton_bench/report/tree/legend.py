"""The lines below a tree: what its columns mean, and rows that are too deep."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from rich.console import Console
from rich.segment import Segment

from proton_bench.analysis.metrics.unit_use import INTERVAL_NOTE
from proton_bench.analysis.metrics.values import MetricValues
from proton_bench.analysis.view.tree import MetricTree
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.report.text.theme import DIM
from proton_bench.report.words.edge import prose
from proton_bench.support.text import visible
from proton_bench.support.units import count_text

__all__ = ["largest_of", "legend"]


def legend(console: Console, tree: MetricTree, *, edge: int | None) -> Iterator[Segment]:
    """Yield an empty line and the meanings of the columns in one line.

    Args:
        console: Where it is shown.
        tree: The rows above it.
        edge: Width of the terminal, None for none.
    """
    meanings = list(_meanings(tree))
    if meanings or tree.cut or tree.unvalued:
        yield Segment("\n")
    if meanings:
        yield from prose(console, "; ".join(meanings), DIM, edge=edge)
    if tree.cut:
        deeper = count_text(tree.cut, "deeper row is", "deeper rows are")
        yield from prose(console, f"{deeper} not shown; -d shows more", DIM, edge=edge)
    if tree.unvalued:
        without = count_text(tree.unvalued, "row is", "rows are")
        text = f"{without} not shown, with other metrics only: -l lists what -m can show"
        yield from prose(console, text, DIM, edge=edge)


def largest_of(metric: MetricValues) -> float:
    """Return the largest absolute finite value, 0 if there is none."""
    values = np.abs(metric.values[metric.valid].astype(np.float64))
    return float(values[np.isfinite(values)].max(initial=0.0))


def _meanings(tree: MetricTree) -> Iterator[str]:
    if any(metric.aggregation is Aggregation.INCLUSIVE for metric in tree.metrics):
        yield "(inc): with all rows below"
    for metric in tree.metrics:
        # A share is clear from its heading.
        if metric.meaning and not metric.name.endswith("/%"):
            yield f"{visible(metric.name)}: {metric.meaning}"
    if any(metric.halves is not None for metric in tree.metrics):
        yield INTERVAL_NOTE
