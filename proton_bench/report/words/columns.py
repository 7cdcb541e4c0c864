"""Columns of texts before a name, and what of them fits a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len, set_cell_size

__all__ = ["LEAST_NAME", "Column", "cut", "fitting"]

# A name gets at least so much room before columns are given up.
LEAST_NAME = 24


@dataclass(frozen=True, slots=True)
class Column:
    """One column of numbers.

    Attributes:
        title: What stands above it.
        texts: One text per shown row.
        worth: Order in which columns are given up where there is no room, greatest first.
        unit: What all texts are in, "" where none is to be named.
    """

    title: str
    texts: tuple[str, ...]
    worth: int = 0
    unit: str = ""

    @property
    def heading(self) -> str:
        """The title with the unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    @property
    def width(self) -> int:
        """Characters that the column takes."""
        return max(map(len, (self.heading, *self.texts)))


def fitting(every: Sequence[Column], edge: int) -> list[Column]:
    """Return the columns that leave room for a name before the edge, the worthiest ones.

    Before any is given up, a unit is named by the first column alone that has it.
    """
    left, shown = list(every), list(every)
    while sum(column.width + 2 for column in shown) + LEAST_NAME > edge:
        short = _short(left)
        if short != shown:
            shown = short
            continue
        least = max(left, key=lambda column: column.worth)
        if not least.worth:
            break
        left = [column for column in left if column.worth != least.worth]
        shown = _short(left)
    return shown


def _short(columns: Sequence[Column]) -> list[Column]:
    units: set[str] = set()
    found = []
    for column in columns:
        found.append(replace(column, unit="") if column.unit in units else column)
        units.add(column.unit)
    return found


def cut(text: str, room: int) -> str:
    """Return what of a text fits, with an ellipsis where something does not."""
    if cell_len(text) <= room:
        return text
    return "" if room < 2 else set_cell_size(text, room - 1).rstrip() + "…"
