"""The rows of a flame graph: the largest first, each at least as wide as the rows below it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from proton_bench.analysis.accounting.calls import CALLS
from proton_bench.analysis.compare.compare import Comparison
from proton_bench.analysis.compare.pairing import PairedTree
from proton_bench.analysis.metrics.formula import Divisor, divisor_of
from proton_bench.analysis.metrics.values import MetricValues
from proton_bench.analysis.naming.frame_names import Places
from proton_bench.analysis.view.select import MetricTree, renumbered
from proton_bench.errors import MetricError
from proton_bench.model.arrays import Array, Floats, Indexes, Integers
from proton_bench.model.frame import KIND_NAMES
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.preorder import depths, positions
from proton_bench.report.html.table import (
    Form,
    HtmlColumn,
    change_columns,
    measure_form,
    metric_column,
    metric_form,
    rounded,
)
from proton_bench.report.words.diff import notes
from proton_bench.support.text import visible


@dataclass(frozen=True, slots=True, eq=False)
class Arrangement:
    """Rows in pre-order, the widest of siblings first.

    Attributes:
        order: The rows.
        parents: The place of each one's parent in ``order``, -1 for the root.
    """

    order: Integers
    parents: list[int]


def arranged(parents: Array, widths: Floats, limit: int) -> Arrangement:
    """Return the widest rows in the order of the page.

    Args:
        parents: Row of each row's parent, -1 for the root.
        widths: Result of `row_widths`.
        limit: How many rows to keep; rows below a left-out row are left out too.
    """
    rows = np.arange(len(widths))
    # A parent is at least as wide as its rows and comes before them, so it is never left out.
    kept = np.sort(np.lexsort((rows, -widths))[:limit])
    inner = renumbered(parents, np.isin(rows, kept))
    by_level = np.lexsort((-widths[kept], depths(inner)))
    ranks = np.empty(len(kept), dtype=np.int64)
    ranks[by_level] = np.arange(len(kept))
    above = _looked_up(ranks, inner[by_level])
    places = positions(above)
    order = np.empty(len(kept), dtype=np.int64)
    order[places] = kept[by_level]
    final = np.empty(len(kept), dtype=np.int64)
    final[places] = _looked_up(places, above)
    return Arrangement(order, final.tolist())


def _looked_up(numbers: Array, above: Array) -> Indexes:
    """Return the number of each parent, -1 for that of the root."""
    return np.where(above >= 0, numbers[above], -1).astype("<i4")


def row_widths(parents: Array, sizes: Floats) -> Floats:
    """Return the size of each row, or that of all rows below it if that is more."""
    found = np.where(np.isfinite(sizes), np.maximum(sizes, 0.0), 0.0).tolist()
    below = [0.0] * len(found)
    above = parents.tolist()
    for row in range(len(found) - 1, -1, -1):
        found[row] = max(found[row], below[row])
        if row:
            below[above[row]] += found[row]
    return np.array(found)


# A page with more opens slowly; the smallest rows are left out.
MAX_ROWS = 200_000
# Where installers put packages, and Python's own modules.


@dataclass(frozen=True, slots=True, eq=False)
class FlameGraph:
    """Rows in pre-order, the widest of siblings first.

    Attributes:
        strings: Distinct names, ready to be shown.
        parents: Row of each row's parent, -1 for the root.
        libraries: Which of ``strings`` are frames of installed packages or of Python itself.
        names: Index of each row's name in ``strings``.
        kinds: `FrameKind` of each row.
        devices: Position of each row's device in ``device_names``, 0 for none.
        device_names: Devices; the first is "".
        widths: Ways to size the rows, with a title each; times in ns.
        columns: Values of rows; the first one is that of the first widths.
        notes: Further notes on a row.
        tints: Change of each row as a share of its larger side, -1 to 1, which colours it; None in
            the graph of one run.
        hidden: Number of rows left out as too small.
    """

    strings: tuple[str, ...]
    libraries: list[int]
    parents: list[int]
    names: list[int]
    kinds: list[int]
    devices: list[int]
    device_names: tuple[str, ...]
    widths: tuple[tuple[str, list[float | None]], ...]
    columns: tuple[HtmlColumn, ...]
    notes: dict[int, str]
    tints: list[float | None] | None
    hidden: int

    def plain(self) -> dict[str, Any]:
        """Return the data for the page's script."""
        return {
            "strings": self.strings,
            "libraries": self.libraries,
            "parents": self.parents,
            "names": self.names,
            "kinds": self.kinds,
            "kindNames": KIND_NAMES,
            "devices": self.devices,
            "deviceNames": self.device_names,
            "widths": [self._plain_widths(title, values) for title, values in self.widths],
            "columns": [column.plain() for column in self.columns],
            "notes": {str(row): text for row, text in self.notes.items()},
            "tints": self.tints,
        }

    def _plain_widths(self, title: str, values: list[float | None]) -> dict[str, Any]:
        """Return widths, which most often are the values of a column that is there anyway."""
        for place, column in enumerate(self.columns):
            if column.title == title:
                same = column.values == values
                return {"title": title, "column": place, "values": None if same else values}
        return {"title": title, "column": 0, "values": values}


def flame_of_tree(tree: MetricTree, limit: int = MAX_ROWS) -> FlameGraph:
    """Return the flame graph of a profile; the first metric gives the widths.

    Args:
        tree: Rows and metrics.
        limit: The most rows to show, the widest ones.

    Raises:
        MetricError: The first metric does not add up, so it cannot be the width.
    """
    first = tree.metrics[0]
    if not is_amount(first):
        example = f"-m time/ms,{visible(first.name, 80)}"
        raise MetricError(
            f"metric {first.name!r} does not add up over rows, so it cannot be the width of a "
            f"flame graph: put one that does first, such as {example}"
        )
    widths = [
        (metric, _widths(tree.parents, metric)) for metric in tree.metrics if _adds_up(metric)
    ]
    shown = arranged(tree.parents, widths[0][1], limit)
    order = shown.order
    device_names = tuple(dict.fromkeys(("", *tree.devices)))
    places = {name: place for place, name in enumerate(device_names)}
    strings, libraries, names = _named(tree, tree.frames[order])
    columns = [
        replace(metric_column(each.take(order)), sums=_adds_up(each)) for each in tree.metrics
    ]
    return FlameGraph(
        strings=strings,
        libraries=libraries,
        parents=shown.parents,
        names=names,
        kinds=tree.kinds[order].tolist(),
        devices=[places[tree.devices[row]] for row in order.tolist()],
        device_names=tuple(map(visible, device_names)),
        widths=tuple(
            (title, rounded(sizes[order].tolist(), scale))
            for metric, sizes in widths
            for title, _, scale in [metric_form(metric.name)]
        ),
        columns=tuple(columns),
        notes={},
        tints=None,
        hidden=len(tree) - len(order),
    )


def flame_of_comparison(comparison: Comparison) -> FlameGraph:
    """Return the differential flame graph of a comparison by call path.

    Rows of one side only keep their size, so nothing is lost.

    Raises:
        MetricError: The metric does not add up over rows, so it cannot be the width.
    """
    if not comparison.measure.is_additive:
        raise MetricError(
            f"metric {comparison.measure.name!r} does not add up over rows, so it cannot be the "
            "width of a flame graph; use proton diff -m to see its change row by row"
        )
    tree, values = comparison.tree, comparison.inclusive
    base, new = (np.asarray(side, dtype=np.float64) for side in (values.base, values.new))
    larger = row_widths(tree.parents, np.maximum(base, new))
    shown = arranged(tree.parents, larger, MAX_ROWS)
    order = shown.order
    sizes = {
        "larger of both": larger,
        "new": row_widths(tree.parents, new),
        "base": row_widths(tree.parents, base),
    }
    scale = measure_form(comparison.measure)[2]
    strings, libraries, names = _named(tree, tree.frames()[order])
    columns = change_columns(comparison, order)
    found = {place: ", ".join(notes(comparison, row)) for place, row in enumerate(order.tolist())}
    return FlameGraph(
        strings=strings,
        libraries=libraries,
        parents=shown.parents,
        names=names,
        kinds=tree.kinds[order].tolist(),
        devices=tree.devices[order].tolist(),
        device_names=tuple(map(visible, tree.device_names)),
        widths=tuple(
            (title, rounded(each[order].tolist(), scale)) for title, each in sizes.items()
        ),
        columns=tuple(columns),
        notes={place: text for place, text in found.items() if text},
        tints=_tints(base[order], new[order]),
        hidden=len(tree) - len(order),
    )


def is_amount(metric: MetricValues) -> bool:
    """Return whether a metric can be the width of a row: it adds up, or is a wall time."""
    is_quotient = divisor_of(metric.name) not in {Divisor.NOTHING, Divisor.TOTAL}
    if not metric.is_number or is_quotient:
        return False
    # Wall times include the rows below; a metric with its own meaning is not a plain time.
    is_wall = metric.aggregation is Aggregation.EXCLUSIVE and not metric.meaning
    is_time = metric_form(metric.name)[1] is Form.TIME
    return metric.aggregation is Aggregation.INCLUSIVE or (is_wall and is_time)


def _adds_up(metric: MetricValues) -> bool:
    """Return whether values of rows can be added up; calls can, though each row has its own."""
    return is_amount(metric) or metric.name == CALLS


def _tints(base: Array, new: Array) -> list[float | None]:
    larger = np.maximum(np.abs(base), np.abs(new))
    shares = np.zeros(len(base))
    np.divide(new - base, larger, out=shares, where=larger > 0)
    return rounded(np.round(np.clip(shares, -1.0, 1.0), 3).tolist())


def _widths(parents: Array, metric: MetricValues) -> Floats:
    return row_widths(parents, np.where(metric.valid, metric.values, 0).astype(np.float64))


def _named(
    tree: MetricTree | PairedTree, frames: Array
) -> tuple[tuple[str, ...], list[int], list[int]]:
    """Return distinct names as shown, which of them are of libraries, and the name of each row."""
    used, places = np.unique(frames, return_inverse=True)
    shown = tuple(visible(tree.strings[place]) for place in used.tolist())
    recorded = tree.recorded or tree.strings
    libraries = [
        number for number, place in enumerate(used.tolist()) if Places().library_of(recorded[place])
    ]
    return shown, libraries, places.reshape(-1).tolist()
