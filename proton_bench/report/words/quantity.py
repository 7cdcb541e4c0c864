"""The unit of a comparison, and shares as text."""

from __future__ import annotations

import math
from collections.abc import Iterable

from proton_bench.analysis.metrics.measure import Measure
from proton_bench.support.text import visible
from proton_bench.support.units import Unit

__all__ = ["measured_unit", "percent_text", "share_text"]

_MAX_UNIT = 20


def measured_unit(measure: Measure, values: Iterable[float | None]) -> Unit:
    """Return the requested unit of the metric, else one that fits the largest value.

    Args:
        measure: What was compared.
        values: All values to write, in the unit of the measure's source.
    """
    if measure.scale != 1.0:
        return Unit.of_numbers(values, measure.scale, measure.name.rpartition("/")[2])
    if measure.unit == "ns":
        return Unit.of_times(values)
    unit = "%" if measure.name.endswith("/%") else visible(measure.unit, _MAX_UNIT)
    return Unit.of_numbers(values, 1.0, unit)


def share_text(part: float, whole: float = 1.0, *, decimals: int = 1) -> str:
    """Return a part of a whole without a sign: ``12.3 %``; what is less than that shows ``<0.1 %``.

    Args:
        part: The part; its sign does not count.
        whole: The whole; no share of nothing is known.
        decimals: Decimals of the percentage.
    """
    percent = 100.0 * abs(part) / whole if whole > 0 else math.nan
    if math.isnan(percent):
        return "-"
    if 0 < percent < 10**-decimals:
        return f"<{10**-decimals:g} %"
    return f"{percent:.{decimals}f} %" if percent else "0 %"


def percent_text(share: float) -> str:
    """Return a change with its sign: ``+12.3 %``."""
    if not math.isfinite(share):
        return "-"
    percent = 100.0 * share
    text = f"{percent:.0f}" if abs(percent) >= 100.0 else f"{percent:.1f}"
    if float(text) == 0.0:
        return "0 %" if percent == 0 else f"{percent:+.1g} %"
    return f"{'+' if percent > 0 else ''}{text} %"
