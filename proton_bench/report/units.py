"""Numbers as text. Needs nothing but the standard library."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

__all__ = ["bytes_text", "count_text", "duration_text", "number_texts"]

_DURATIONS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))
_BYTES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))
_LARGE = 1e9
_SMALL = 1e-6
_DECIMALS = 3


def duration_text(nanoseconds: float) -> str:
    """Return a time in ns with four digits and the unit that fits: ``1.234 ms``."""
    size = abs(nanoseconds)
    factor, unit = next((step for step in _DURATIONS if size >= step[0]), _DURATIONS[-1])
    return f"{_digits(nanoseconds / factor)} {unit}"


def bytes_text(size: float) -> str:
    """Return a size in bytes with four digits and the unit that fits: ``64 MiB``."""
    factor, unit = next((step for step in _BYTES if abs(size) >= step[0]), _BYTES[-1])
    return f"{_digits(size / factor)} {unit}"


def count_text(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun: ``1 row``, ``12 345 rows``."""
    noun = one if count == 1 else many or f"{one}s"
    return f"{count:,}".replace(",", " ") + f" {noun}"


def number_texts(values: Iterable[float | None], missing: str = "-") -> list[str]:
    """Return numbers of one column as text: integers whole, others with as many decimals each.

    Args:
        values: Numbers; None and NaN have no value.
        missing: Text for no value.
    """
    column = list(values)
    numbers = [v for v in column if v is not None and math.isfinite(v)]
    write = _writer(numbers)
    return [missing if v is None or math.isnan(v) else write(v) for v in column]


def _writer(numbers: list[float]) -> Callable[[float], str]:
    if all(isinstance(number, int) for number in numbers):
        return str
    largest = max(map(abs, numbers), default=0.0)
    if largest and not _SMALL <= largest < _LARGE:
        return "{:.4g}".format
    # Four digits of the largest value at least.
    decimals = _DECIMALS
    if largest:
        decimals = max(_DECIMALS, _DECIMALS - math.floor(math.log10(largest)))
    return f"{{:.{decimals}f}}".format


def _digits(value: float) -> str:
    if not math.isfinite(value):
        return str(value)
    digits = 4 - len(str(int(abs(value))))
    text = f"{value:.{max(digits, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
