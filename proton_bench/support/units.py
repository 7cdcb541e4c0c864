"""Numbers as text: one unit for all of a column. Needs nothing but the standard library."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_Steps = Sequence[tuple[float, str]]

_TIMES: _Steps = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))
_SIZES: _Steps = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1, "B"))
_LARGE = 1e9
_SMALL = 1e-6
_DECIMALS = 3
# Least digits of a value that is much smaller than the largest of its column.
_LEAST_DIGITS = 2
# A value that needs more decimals than this is a rounding error of 0.
_MOST_MORE = 6


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of a set of values, chosen once for all of them.

    Attributes:
        scale: Size of the unit in that of the values.
        name: Its text in a heading or after a value, "" for none.
        decimals: Decimals of a column; 0 for whole numbers, None for numbers written with an
            exponent.
    """

    scale: float = 1.0
    name: str = ""
    decimals: int | None = 0

    @classmethod
    def of_times(cls, nanoseconds: Iterable[float | None]) -> Unit:
        """Return the unit that fits the largest of these times in ns."""
        return cls._fitting(nanoseconds, _TIMES)

    @classmethod
    def of_sizes(cls, sizes: Iterable[float | None]) -> Unit:
        """Return the unit that fits the largest of these sizes in bytes."""
        return cls._fitting(sizes, _SIZES)

    @classmethod
    def of_numbers(cls, values: Iterable[float | None], scale: float = 1.0, name: str = "") -> Unit:
        """Return a given unit with the decimals that these values need.

        Args:
            values: The values to write.
            scale: Size of the unit in that of the values.
            name: Name of the unit.
        """
        return cls._fitting(values, [(scale, name)])

    @classmethod
    def _fitting(cls, values: Iterable[float | None], steps: _Steps) -> Unit:
        numbers = [value for value in values if value is not None and math.isfinite(value)]
        largest = max(map(abs, numbers), default=0.0)
        scale, name = next((step for step in steps if largest >= step[0]), steps[-1])
        is_whole = scale == 1.0 and all(isinstance(number, int) for number in numbers)
        return cls(scale, name, 0 if is_whole else _decimals(largest / scale))

    def texts(
        self, values: Iterable[float | None], *, signed: bool = False, missing: str = "-"
    ) -> list[str]:
        """Return the values of a column without the unit, which is in the heading.

        If all values are integers they stay whole; otherwise they have equal decimals, and small
        ones have more to show two digits.

        Args:
            values: Numbers; None and NaN have no value.
            signed: Whether they are changes, shown with a sign.
            missing: Text for no value.
        """
        return [
            missing if value is None or math.isnan(value) else self._cell(value, signed=signed)
            for value in values
        ]

    def text(self, value: float, *, signed: bool = False) -> str:
        """Return a value for a sentence with four digits and the unit: ``1.234 ms``."""
        number = value / self.scale
        sign = "+" if signed and value > 0 else ""
        return f"{sign}{_digits(number)} {self.name}".rstrip()

    def _cell(self, value: float, *, signed: bool) -> str:
        number = value if self.scale == 1.0 else value / self.scale
        sign = "+" if signed and value > 0 else ""
        if not math.isfinite(number) or (self.decimals == 0 and isinstance(number, int)):
            return f"{sign}{number}"
        if self.decimals is None:
            return f"{sign}{number:.4g}"
        decimals = self.decimals or _DECIMALS
        needed = _LEAST_DIGITS - _magnitude(number)
        if decimals < needed <= decimals + _MOST_MORE:
            text = f"{number:.{needed}f}"
            spare = min(needed - decimals, len(text) - len(text.rstrip("0")))
            return f"{sign}{text[: len(text) - spare]}"
        return f"{sign}{number:.{decimals}f}"


def bytes_text(size: float) -> str:
    """Return a number of bytes with its unit: ``1.5 GiB``."""
    return Unit.of_sizes([size]).text(size)


def duration_text(nanoseconds: float) -> str:
    """Return a time in ns with four digits and the unit that fits: ``1.234 ms``."""
    return Unit.of_times([nanoseconds]).text(nanoseconds)


_ALL = 100.0 - 1e-7  # sums of parts round


def share_text(part: float, whole: float = 1.0, *, decimals: int | None = 1) -> str:
    """Return a part of a whole without a sign: ``12.3 %``.

    What is not nothing and not all of it is never shown as that, but as ``<0.1 %`` and ``>99.9 %``.

    Args:
        part: The part; its sign does not count.
        whole: The whole; no share of nothing is known.
        decimals: Decimals below 100 %; None shows two digits, however small it is.
    """
    percent = 100.0 * abs(part) / whole if whole > 0 else math.nan
    if math.isnan(percent):
        return "-"
    if percent == 0.0 or percent > _ALL:
        return f"{percent:.0f} %"
    if decimals is None and percent < 10.0:
        return f"{percent:.2g} %"
    decimals = decimals or 0
    least = 10**-decimals
    if percent < least:
        return f"<{least:g} %"
    return f">{100 - least:g} %" if percent > 100 - least else f"{percent:.{decimals}f} %"


def percent_text(share: float) -> str:
    """Return a change with its sign: ``+12.3 %``."""
    if not math.isfinite(share):
        return "-"
    percent = 100.0 * share
    text = f"{percent:.0f}" if abs(percent) >= 100.0 else f"{percent:.1f}"
    if float(text) == 0.0:
        return "0 %" if percent == 0 else f"{percent:+.1g} %"
    return f"{'+' if percent > 0 else ''}{text} %"


def count_text(count: float, one: str, many: str | None = None) -> str:
    """Return a count with its noun: ``1 row``, ``12 345 rows``, ``6.5 calls`` on average."""
    noun = one if count == 1 else many or f"{one}s"
    is_whole = count == round(count) or count >= 100
    number = f"{round(count):,}" if is_whole else f"{count:.3g}"
    return number.replace(",", " ") + f" {noun}"


def number_texts(values: Iterable[float | None]) -> list[str]:
    """Return numbers of one column as text, for a known unit: see `Unit.texts`; NaN is ``nan``."""
    column = list(values)
    texts = Unit.of_numbers(column).texts(column)
    pairs = zip(column, texts, strict=True)
    return ["nan" if value is not None and math.isnan(value) else text for value, text in pairs]


def _decimals(largest: float) -> int | None:
    """Return the decimals that show four digits of the largest value, at least three."""
    if largest and not _SMALL <= largest < _LARGE:
        return None
    return max(_DECIMALS, _DECIMALS + 1 - _magnitude(largest))


def _magnitude(number: float) -> int:
    """Return the digits before the point, minus the zeros after it: 2 for 12, -1 for 0.012."""
    return math.floor(math.log10(abs(number))) + 1 if number else 1


def _digits(value: float) -> str:
    if not math.isfinite(value):
        return str(value)
    if 0.0 < abs(value) < _SMALL:
        return f"{value:.4g}"
    text = f"{value:.{max(4 - _magnitude(value), 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
