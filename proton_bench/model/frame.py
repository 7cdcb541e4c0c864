"""Names and kinds of rows."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

ROOT_NAME = "ROOT"
# The row below which the kernels of a CUDA graph stand, at the call paths of its capture.
CAPTURED_NAME = "<captured_at>"
# The outermost row of a test run.
TEST_RUN_NAME = "session"
# Below it: pytest collects tests and imports their modules.
COLLECTION_NAME = "collection"


class FrameKind(IntEnum):
    """The kind of a row; the numbers are part of the `.proton` format and never change."""

    UNKNOWN = 0
    ROOT = 1
    SCOPE = 2
    OP = 3
    KERNEL = 4
    STATE = 5
    PYTHON = 6
    COPY = 7
    GRAPH = 8
    LINE = 9
    TEST = 10
    LAYER = 11


# Names of the kinds in files and pages.
KIND_NAMES = tuple(kind.name.lower() for kind in FrameKind)


def escape_surrogates(text: str) -> str:
    r"""Return the text with lone surrogates written as ``\udcXX``, so that UTF-8 can hold it."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


class StringTable:
    """Distinct strings in order of first use."""

    __slots__ = ("_positions",)

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._positions: dict[str, int] = {}
        for text in texts:
            self.index(text)

    def __len__(self) -> int:
        return len(self._positions)

    def index(self, text: str) -> int:
        """Return the index of the text, added if it is new; lone surrogates are escaped."""
        found = self._positions.get(text)
        if found is None:
            found = self._positions.setdefault(escape_surrogates(text), len(self._positions))
        return found

    def texts(self) -> tuple[str, ...]:
        """Return every string, at the index from `index`."""
        return tuple(self._positions)
