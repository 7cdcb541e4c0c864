"""Columns of texts before a name, and what of them fits a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    """

    title: str
    texts: tuple[str, ...]
    worth: int = 0

    @property
    def width(self) -> int:
        """Characters that the column takes."""
        return max(map(len, (self.title, *self.texts)))


def fitting(every: Sequence[Column], edge: int) -> list[Column]:
    """Return the columns that leave room for a name before the edge, the worthiest ones."""
    shown = list(every)
    while sum(column.width + 2 for column in shown) + LEAST_NAME > edge:
        least = max(shown, key=lambda column: column.worth)
        if not least.worth:
            break
        shown = [column for column in shown if column.worth != least.worth]
    return shown


def cut(text: str, room: int) -> str:
    """Return what of a text fits, with an ellipsis where something does not."""
    if cell_len(text) <= room:
        return text
    return "" if room < 2 else set_cell_size(text, room - 1).rstrip() + "…"
