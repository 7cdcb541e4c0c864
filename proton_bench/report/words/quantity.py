"""The unit of a comparison, and shares as text."""

from __future__ import annotations

from collections.abc import Iterable

from proton_bench.analysis.metrics.measure import Measure
from proton_bench.support.text import visible
from proton_bench.support.units import Unit

__all__ = ["measured_unit"]

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
