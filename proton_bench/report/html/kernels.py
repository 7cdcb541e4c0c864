"""The kernel table: one row per kernel or operator, over all call paths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from proton_bench.analysis.compare.compare import Comparison
from proton_bench.analysis.metrics.derive import available_metrics
from proton_bench.analysis.view.select import Selection, build_tree
from proton_bench.analysis.view.tree import MetricTree
from proton_bench.errors import MetricError
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile
from proton_bench.report.html.column import (
    Form,
    HtmlColumn,
    change_columns,
    metric_column,
    rounded,
)
from proton_bench.report.words.diff import notes
from proton_bench.support.text import visible

__all__ = ["KernelTable", "changed_kernels", "kernel_table"]

# Shown whenever a profile has them.
_OFFERED = (
    *("avg_time/us", "median_time/us", "p95_time/us"),
    *("tflop/s", "tflop8/s", "tflop16/s", "tflop32/s", "tflop64/s", "gbyte/s"),
    *("dram_gbyte/s", "traffic", "bound", "roof_distance", "occupancy"),
)


@dataclass(frozen=True, slots=True, eq=False)
class KernelTable:
    """Kernels, the largest first metric first.

    Attributes:
        names: Their names, ready to be shown.
        columns: Values; the table is ordered by the first one.
    """

    names: tuple[str, ...]
    columns: tuple[HtmlColumn, ...]

    def plain(self) -> dict[str, Any]:
        """Return the data for the page's script."""
        return {"names": self.names, "columns": [column.plain() for column in self.columns]}


def kernel_table(profile: Profile, metrics: Sequence[str], selection: Selection) -> KernelTable:
    """Return the kernels of a profile.

    Args:
        profile: The profile.
        metrics: What to show; further facts about kernels follow.
        selection: Whether trials are shown and names are raw.
    """
    chosen = replace(selection, flat=True)
    tree = _built(profile, metrics, chosen)
    columns = [metric_column(metric) for metric in tree.metrics]
    columns[1:1] = _share(tree)
    columns += _devices(tree.devices)
    return KernelTable(
        names=tuple(visible(tree.name(row)) for row in range(1, len(tree))),
        columns=tuple(replace(column, values=column.values[1:]) for column in columns),
    )


def changed_kernels(comparison: Comparison) -> KernelTable:
    """Return the kernels of a comparison, the largest change first."""
    tree = comparison.tree
    order = np.argsort(-np.abs(comparison.inclusive.change.astype(np.float64)), kind="stable")
    rows = order[order > 0]
    states = [", ".join(notes(comparison, row)) or None for row in rows.tolist()]
    columns = change_columns(comparison, rows)
    if any(states):
        # Beside the change, visible without scrolling.
        place = [column.title for column in columns].index("growth") + 1
        columns.insert(place, HtmlColumn("status", Form.TEXT, states))
    columns += _devices([tree.device_names[place] for place in tree.devices[rows].tolist()])
    names = (visible(tree.name(row)) for row in rows.tolist())
    return KernelTable(tuple(names), tuple(columns))


def _built(profile: Profile, metrics: Sequence[str], chosen: Selection) -> MetricTree:
    """Return the kernels with further facts of the profile."""
    derivable = available_metrics(profile).derivable
    extra = [name for name in _OFFERED if name in derivable and name not in metrics]
    try:
        tree = build_tree(profile, [*metrics, *extra], chosen)
    except MetricError:
        # Listed, but the device is unknown, samples are unusable, or a table lacks whole times.
        extra = [name for name in extra if _is_shown(profile, name, chosen)]
        tree = build_tree(profile, [*metrics, *extra], chosen)
    shown = [
        metric
        for place, metric in enumerate(tree.metrics)
        if place < len(metrics) or bool(metric.valid[1:].any())
    ]
    return replace(tree, metrics=tuple(shown))


def _is_shown(profile: Profile, name: str, chosen: Selection) -> bool:
    try:
        build_tree(profile, [name], chosen)
    except MetricError:
        return False
    return True


def _share(tree: MetricTree) -> Iterator[HtmlColumn]:
    first = tree.metrics[0]
    if not first.is_number or first.aggregation is not Aggregation.INCLUSIVE:
        return
    total = float(first.values[0])
    if total > 0:
        shares = rounded([None if v is None else 100.0 * v / total for v in first.to_list()])
        yield HtmlColumn("share", Form.PERCENT, shares, f"share of all {first.name}")


def _devices(names: Sequence[str]) -> Iterator[HtmlColumn]:
    if len(set(names) - {""}) > 1:
        yield HtmlColumn("device", Form.TEXT, [visible(name) or None for name in names])
