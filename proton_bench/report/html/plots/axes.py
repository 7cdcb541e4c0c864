"""Logarithmic axes of a plot: powers of ten on both, and positions of values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Axes", "Tick", "scaled"]

WIDTH, HEIGHT = 720, 380
LEFT, RIGHT, TOP, BOTTOM = 76, 32, 16, 48
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_MAX_TICKS = 12
# Room for the marks around each value.
_MARGIN = 1.5


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis: its position and text."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Axes:
    """Powers of ten between which the axes run."""

    x_low: int
    x_high: int
    y_low: int
    y_high: int

    @classmethod
    def around(cls, xs: Sequence[float], ys: Sequence[float]) -> Axes:
        """Return axes that include all values, which are above 0."""
        return cls(*_decades(xs), *_decades(ys))

    @property
    def left(self) -> float:
        """The value at the left edge."""
        return float(10.0**self.x_low)

    @property
    def right(self) -> float:
        """The value at the right edge."""
        return float(10.0**self.x_high)

    @property
    def bottom(self) -> float:
        """The value at the lower edge."""
        return float(10.0**self.y_low)

    def x(self, value: float) -> float:
        """Return the position of a value from the left edge of the drawing."""
        share = (math.log10(value) - self.x_low) / (self.x_high - self.x_low)
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 2)

    def y(self, value: float) -> float:
        """Return the position of a value from the upper edge of the drawing."""
        share = (math.log10(value) - self.y_low) / (self.y_high - self.y_low)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 2)

    def x_ticks(self) -> Iterator[Tick]:
        """Yield the marks of the lower edge."""
        for value in _marks(self.x_low, self.x_high):
            yield Tick(self.x(value), scaled(value).rstrip() if value >= 1 else f"{value:g}")

    def y_ticks(self, unit: str) -> Iterator[Tick]:
        """Yield the marks of the left edge."""
        for value in _marks(self.y_low, self.y_high):
            yield Tick(self.y(value), f"{scaled(value)}{unit}")


def scaled(value: float) -> str:
    """Return a number with the prefix for its unit: ``1.07 P``."""
    factor, prefix = next((step for step in _PREFIXES if value >= step[0]), _PREFIXES[-1])
    return f"{value / factor:.3g} {prefix}"


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = min(values) / _MARGIN, max(values) * _MARGIN
    return math.floor(math.log10(low)), math.ceil(math.log10(high))


def _marks(low: int, high: int) -> Iterator[float]:
    for power in range(low, high + 1, max(1, math.ceil((high - low) / _MAX_TICKS))):
        yield float(10.0**power)
