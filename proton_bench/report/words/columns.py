"""Columns of texts before a name, and the choice of those that fit a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

__all__ = ["LEAST_NAME", "Column", "fitting_columns"]

# Least room for a name before columns are removed.
LEAST_NAME = 24


@dataclass(frozen=True, slots=True)
class Column:
    """One column of numbers.

    Attributes:
        title: Its heading.
        texts: One text per shown row.
        worth: Order in which columns are removed without room, greatest first.
        unit: Unit of all texts, "" for none.
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


def fitting_columns(every: Sequence[Column], edge: int) -> list[Column]:
    """Return the most important columns that leave room for a name.

    Before a column is removed, only the first column of a unit names it.
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
