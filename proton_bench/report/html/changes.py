"""The numbers of a comparison as columns of the page."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.compare.compare import Comparison
from proton_bench.analysis.metrics.formula import SECONDS
from proton_bench.analysis.metrics.measure import Measure
from proton_bench.report.html.column import Form, HtmlColumn, metric_form, rounded
from proton_bench.report.words.diff_rows import SCALED
from proton_bench.support.text import visible

__all__ = ["change_columns", "measure_form"]

Rows = npt.NDArray[np.int64]
Values = npt.NDArray[Any]

_MAX_TITLE = 80
# Values, changes and their parts are side by side.
_AMOUNTS = "amounts"
_REACH = "+-"  # intervals of rows do not add up


def measure_form(measure: Measure) -> tuple[str, Form, float]:
    """Return the result of `metric_form` for the values of a comparison."""
    if measure.unit in SECONDS:
        return metric_form(measure.source)
    return visible(measure.name, _MAX_TITLE), Form.NUMBER, 1.0


def change_columns(comparison: Comparison, rows: Rows) -> list[HtmlColumn]:
    """Return new and base values, the change, and its parts by launches and by latency.

    Args:
        comparison: Of a metric that adds up over rows.
        rows: Which of its rows.
    """
    values = comparison.inclusive
    title, form, scale = measure_form(comparison.measure)

    def column(name: str, cells: Values, meaning: str, *, signed: bool = False) -> HtmlColumn:
        shown = rounded(cells[rows].tolist(), scale)
        return HtmlColumn(name, form, shown, meaning, signed, _AMOUNTS, sums=name != _REACH)

    said = f"{title} of the new runs" + (f"; {SCALED}" if comparison.scaled else "")
    found = [
        column("new", _known(values.new, values.new_valid), said),
        column("base", _known(values.base, values.base_valid), f"{title} of the base"),
        column("change", values.change, "new minus base", signed=True),
        HtmlColumn(
            "growth", Form.PERCENT, _growth(comparison, rows), "share of the base", signed=True
        ),
    ]
    if comparison.interval is not None:
        reach = (comparison.interval.high - comparison.interval.low) / 2.0
        found.insert(3, column(_REACH, reach, "half of the 95 % interval of the change"))
    if values.split is not None:
        launches = "mean latency of both sides x more or fewer launches"
        latency = "mean launches of both sides x change of one launch"
        found += [
            column("by launches", values.split.launches, launches, signed=True),
            column("by latency", values.split.latency, latency, signed=True),
        ]
    if values.new_count.any() or values.base_count.any():
        for word, counts in (("new", values.new_count), ("base", values.base_count)):
            cells = rounded(counts[rows].tolist())
            title = f"launches {word}"
            found.append(HtmlColumn(title, Form.COUNT, cells, "launches and calls", sums=True))
    return found


def _known(values: Values, valid: npt.NDArray[np.bool_]) -> Values:
    cells = values.astype(object)
    cells[~valid] = None
    return cells


def _growth(comparison: Comparison, rows: Rows) -> list[float | None]:
    values = comparison.inclusive
    base, change = values.base[rows].astype(np.float64), values.change[rows].astype(np.float64)
    known = values.base_valid[rows] & values.new_valid[rows] & (base != 0)
    shares = np.full(len(rows), np.nan)
    np.divide(change * 100.0, np.abs(base), out=shares, where=known)
    return rounded(shares.tolist())
