"""Columns of numbers for the page, times in nanoseconds, and the table of kernels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from proton_bench.analysis.compare.compare import Comparison
from proton_bench.analysis.metrics.derive import available_metrics
from proton_bench.analysis.metrics.formula import SECONDS, Divisor, divisor_of
from proton_bench.analysis.metrics.measure import Measure
from proton_bench.analysis.metrics.values import WIDEST, MetricValues
from proton_bench.analysis.view.select import MetricTree, Selection, build_tree
from proton_bench.errors import MetricError
from proton_bench.model.arrays import Integers
from proton_bench.model.metrics.metric import Aggregation, MetricSpec
from proton_bench.model.profile import Profile
from proton_bench.report.words.diff import SCALED, amounts, growths, notes, reaches
from proton_bench.support.text import visible
from proton_bench.support.units import Unit

_MAX_TEXT = 200
_NS = 1e9
# Texts, because JSON has no such numbers; as JavaScript's `Number` reads them.
_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_MEANINGS = {
    Aggregation.INCLUSIVE: "of the row and all rows below it",
    Aggregation.EXCLUSIVE: "of the row alone",
    Aggregation.PROPERTY: "a property of the row",
}
_MAX_TITLE = 80
# Values, changes and their parts are side by side.
_AMOUNTS = "amounts"
_REACH = "+-"  # intervals of rows do not add up
# Shown whenever a profile has them.
_OFFERED = (
    *("avg_time/us", "median_time/us", "p95_time/us"),
    *("tflop/s", "gbyte/s"),
    *("dram_gbyte/s", "traffic", "bound", "roof_distance", "occupancy"),
)


class Form(StrEnum):
    """How the page writes the values of a column."""

    TEXT = "text"
    TIME = "time"
    NUMBER = "number"
    COUNT = "count"
    PERCENT = "percent"


@dataclass(frozen=True, slots=True)
class HtmlColumn:
    """One value per row.

    Attributes:
        title: Its heading.
        form: How values are written; times are in ns.
        values: Numbers or texts, None for rows without one.
        meaning: One sentence about a value, or "".
        signed: Whether values are changes, shown with a sign.
        group: Columns of one group are compared with each other and share a unit; "" for none.
        sums: Whether values of several rows can be added up.
    """

    title: str
    form: Form
    values: list[Any]
    meaning: str = ""
    signed: bool = False
    group: str = ""
    sums: bool = False

    def plain(self) -> dict[str, Any]:
        """Return the data for the page's script."""
        return {
            "title": self.title,
            "form": self.form.value,
            "values": [
                _NOT_FINITE[str(value)]
                if isinstance(value, float) and not math.isfinite(value)
                else value
                for value in self.values
            ],
            "meaning": self.meaning,
            "signed": self.signed,
            "group": self.group,
            "sums": self.sums,
        }


def form_unit(form: Form, values: Iterable[float | None]) -> Unit:
    """Return the unit in which these values of a form are written."""
    if form is Form.TIME:
        return Unit.of_times(values)
    return Unit.of_numbers(values, name="%" if form is Form.PERCENT else "")


def metric_form(name: str) -> tuple[str, Form, float]:
    """Return the title of a metric, its form, and the size of its unit in that form's unit.

    Args:
        name: Full name of a recorded metric, or name of a derived one.
    """
    spec = MetricSpec(name)
    base, unit = spec.base, spec.unit
    if not unit and divisor_of(name) is not Divisor.SECONDS:
        base, _, unit = name.rpartition("/")
    if unit in SECONDS and base:
        return visible(base, _MAX_TITLE), Form.TIME, round(SECONDS[unit] * _NS)
    if unit == "%" and base:
        return visible(f"{base} %", _MAX_TITLE), Form.PERCENT, 1.0
    return visible(name, _MAX_TITLE), Form.NUMBER, 1.0


def metric_column(metric: MetricValues) -> HtmlColumn:
    """Return a metric as a column of the page."""
    title, form, scale = metric_form(metric.name)
    meaning = metric.meaning or _MEANINGS[metric.aggregation]
    if metric.halves is not None:
        meaning += f"; empty where it is not known within {WIDEST:g} points of the peak"
    if not metric.is_number:
        texts = [None if value is None else _text(value) for value in metric.to_list()]
        return HtmlColumn(title, Form.TEXT, texts, meaning)
    if form is Form.NUMBER and metric.values.dtype.kind == "i":
        form = Form.COUNT
    cells = metric.to_list()
    values = [
        value if cell is None or math.isfinite(cell) else cell
        for cell, value in zip(cells, rounded(cells, scale), strict=True)
    ]
    return HtmlColumn(title, form, values, meaning)


def rounded(values: Iterable[float | None], scale: float = 1.0) -> list[float | None]:
    """Return values for the page: whole numbers whole, others with seven digits.

    Args:
        values: Numbers; None, NaN and infinity become None, because JSON cannot express them.
        scale: Factor for each value.
    """
    return [_rounded(value, scale) for value in values]


def _rounded(value: float | None, scale: float) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    scaled = value * scale
    if not math.isfinite(scaled):
        return None
    if float(scaled).is_integer() and abs(scaled) < 2**53:
        return int(scaled)
    number = float(f"{scaled:.7g}")
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _text(value: object) -> str:
    if isinstance(value, tuple):
        shown = ", ".join(f"{element:.6g}" for element in value[:_MAX_TEXT])
        return visible(f"[{shown}]", _MAX_TEXT)
    return visible(str(value), _MAX_TEXT)


def measure_form(measure: Measure) -> tuple[str, Form, float]:
    """Return the result of `metric_form` for the values of a comparison."""
    if measure.unit in SECONDS:
        return metric_form(measure.source)
    return visible(measure.name, _MAX_TITLE), Form.NUMBER, 1.0


def change_columns(comparison: Comparison, rows: Integers) -> list[HtmlColumn]:
    """Return new and base values, the change, and its parts by launches and by latency.

    Args:
        comparison: Of a metric that adds up over rows.
        rows: Which of its rows.
    """
    values = amounts(comparison, comparison.inclusive, rows.tolist())
    title, form, scale = measure_form(comparison.measure)

    def column(
        name: str, values: Sequence[float | None], meaning: str, *, signed: bool = False
    ) -> HtmlColumn:
        shown = rounded(values, scale)
        return HtmlColumn(name, form, shown, meaning, signed, _AMOUNTS, sums=name != _REACH)

    scaled = f"; {SCALED}" if comparison.scaled else ""
    columns = [
        column("new", values["new"], f"{title} of the new runs{scaled}"),
        column("base", values["base"], f"{title} of the base"),
        column("change", values["change"], "new minus base", signed=True),
    ]
    reach = reaches(comparison, rows.tolist())
    if reach:
        columns.append(column(_REACH, reach, "half of the 95 % interval of the change"))
    growth = rounded(growths(values), 100.0)
    columns.append(HtmlColumn("growth", Form.PERCENT, growth, "share of the base", signed=True))
    if comparison.inclusive.split is not None:
        launches = "mean latency of both sides x more or fewer launches"
        latency = "mean launches of both sides x change of one launch"
        columns.append(column("by launches", values["by_launches"], launches, signed=True))
        columns.append(column("by latency", values["by_latency"], latency, signed=True))
    if comparison.inclusive.new_count.any() or comparison.inclusive.base_count.any():
        for side in ("new", "base"):
            counts = rounded(values[f"{side}_launches"])
            meaning = "launches and calls"
            columns.append(HtmlColumn(f"launches {side}", Form.COUNT, counts, meaning, sums=True))
    return columns


# -- kernels -------------------------------------------------------------------------------------
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
