"""Former places of moved rows, without storing a path for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy.typing as npt

__all__ = ["Origins"]

Path = tuple[str, ...]


class Origins(Mapping[int, Path]):
    """The former path of each moved row, built on demand.

    A path is as long as its row is deep, so the paths of all rows of a deep tree would cost more
    than the comparison.

    Args:
        rows: Row of the earlier tree for each moved row.
        path: Gives the path of a row of the earlier tree.
    """

    def __init__(self, rows: Iterable[tuple[int, int]], path: Callable[[int], Path]) -> None:
        self._rows = dict(rows)
        self._path = path

    def __getitem__(self, row: int) -> Path:
        return self._path(self._rows[row])

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, row: object) -> bool:
        return row in self._rows

    def renamed(self, texts: Mapping[str, str]) -> Origins:
        """Return the origins with other texts for names that have one."""
        path = self._path
        return Origins(
            self._rows.items(), lambda row: tuple(texts.get(name, name) for name in path(row))
        )

    def renumbered(self, numbers: npt.NDArray[Any], chosen: npt.NDArray[Any]) -> Origins:
        """Return the origins of the chosen rows by their new numbers.

        Args:
            numbers: New number of each row.
            chosen: Whether to keep the row with that new number.
        """
        pairs = ((int(numbers[row]), was) for row, was in self._rows.items())
        return Origins((pair for pair in pairs if chosen[pair[0]]), self._path)
