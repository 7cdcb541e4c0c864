"""Colours of reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.style import Style

__all__ = ["BANDS", "DIM", "HEADING", "WARNING", "Band", "bands_of"]

DIM = Style(dim=True)
HEADING = Style(bold=True)
WARNING = Style(color="yellow", bold=True)


@dataclass(frozen=True, slots=True)
class Band:
    """A range of values as shares of the largest one, and how numbers in it look.

    Attributes:
        low: Least share of the band; it ends where the previous band begins.
        style: Colour of the numbers.
    """

    low: float
    style: Style


BANDS = (
    Band(0.9, Style(color="red", bold=True)),
    Band(0.7, Style(color="bright_red")),
    Band(0.5, Style(color="yellow")),
    Band(0.3, Style(color="green")),
    Band(0.1, Style(color="cyan")),
    Band(0.0, Style(color="blue")),
)


def bands_of(values: npt.NDArray[Any], largest: float) -> list[int]:
    """Return for each value the position of its band in `BANDS`; signs are ignored."""
    if not largest > 0:
        return [len(BANDS) - 1] * len(values)
    sizes = np.abs(values.astype(np.float64))
    with np.errstate(invalid="ignore"):  # an overflow makes the largest one infinite
        shares = np.where(sizes == largest, 1.0, sizes / largest)
    lows = np.array([band.low for band in reversed(BANDS)])
    place = np.searchsorted(lows, np.nan_to_num(shares), side="right")
    found: list[int] = np.clip(len(BANDS) - place, 0, len(BANDS) - 1).tolist()
    return found
