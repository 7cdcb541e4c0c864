"""The source line of an operation, from the text of its location."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Place", "own_first", "read_places"]

_FILE_LINE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):\d+')
_TRITON_OWN = (os.path.join("triton", "language"), os.path.join("triton", "experimental"))


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file.

    Attributes:
        path: Path of the file in the compiler.
        line: From 1.
    """

    path: str
    line: int

    def __str__(self) -> str:
        return f"{os.path.basename(self.path)}:{self.line}"


def read_places(location: str) -> tuple[Place, ...]:
    """Return the lines of a location: the operation's own, then those it was inlined into.

    Lines of Triton's own library come last, because ``tl.sum`` is identified by its caller.

    Args:
        location: Text of an MLIR location, e.g. ``loc(callsite("f.py":3:1 at "g.py":9:5))``.
    """
    return own_first([Place(path, int(line)) for path, line in _FILE_LINE.findall(location)])


def own_first(places: Sequence[Place]) -> tuple[Place, ...]:
    """Return the places, with those of Triton's own library last."""
    return tuple(sorted(places, key=_is_library))


def _is_library(place: Place) -> bool:
    folder = os.path.dirname(place.path)
    return any(own in folder for own in _TRITON_OWN)
