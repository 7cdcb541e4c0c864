"""Values of a comparison as text: one unit for all of a column, changes with their sign."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from proton_bench.analysis.measure import Measure
from proton_bench.report.names import visible
from proton_bench.report.units import number_texts

__all__ = ["Quantity", "percent_text"]

_MAX_UNIT = 20
_DURATIONS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))


@dataclass(frozen=True, slots=True)
class Quantity:
    """How values of a measure are written.

    Attributes:
        scale: Size of a written unit in the unit of the measure's source.
        unit: The written unit, "" for none.
        largest: A value in the unit of the source that decides how many decimals columns have.
    """

    scale: float
    unit: str
    largest: float

    @classmethod
    def of(cls, measure: Measure, largest: float) -> Quantity:
        """Return the unit that the metric was asked for in, else one that fits the largest value.

        Args:
            measure: What was compared.
            largest: The value that should have about three digits, in the unit of the source.
        """
        if measure.scale == 1.0 and measure.unit == "ns":
            size = abs(largest)
            scale, unit = next((step for step in _DURATIONS if size >= step[0]), _DURATIONS[-1])
            return cls(scale, unit, largest)
        if measure.scale != 1.0:
            return cls(measure.scale, measure.name.rpartition("/")[2], largest)
        unit = "%" if measure.name.endswith("/%") else visible(measure.unit, _MAX_UNIT)
        return cls(1.0, unit, largest)

    def texts(self, values: Iterable[float | None]) -> list[str]:
        """Return values of one column, "-" for None."""
        column = [self._scaled(value) for value in values]
        return number_texts([*column, self._scaled(self.largest)])[:-1]

    def signed_texts(self, values: Iterable[float | None]) -> list[str]:
        """Return changes of one column with their sign; 0 has none."""
        found = list(values)
        texts = self.texts(found)
        return [
            f"+{text}" if value is not None and value > 0 else text
            for value, text in zip(found, texts, strict=True)
        ]

    def text(self, value: float, *, signed: bool = False) -> str:
        """Return one value with its unit: ``1.234 ms``."""
        number = value / self.scale
        text = f"{number:.4g}" if abs(number) < 1e4 else f"{number:.0f}"
        sign = "+" if signed and value > 0 else ""
        return f"{sign}{text} {self.unit}".rstrip()

    def _scaled(self, value: float | None) -> float | None:
        if value is None or self.scale == 1.0:
            return value
        return value / self.scale


def percent_text(share: float) -> str:
    """Return a share with its sign: ``+12.3 %``."""
    if not math.isfinite(share):
        return "-"
    percent = 100.0 * share
    text = f"{percent:.0f}" if abs(percent) >= 100.0 else f"{percent:.1f}"
    if float(text) == 0.0:
        return "0 %" if percent == 0 else f"{percent:+.1g} %"
    return f"{'+' if percent > 0 else ''}{text} %"
