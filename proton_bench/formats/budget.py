"""Limits on decoding, so that a small file cannot exhaust memory or time.

Each limit grows with the size of the file: recordings need some bytes for each row and event, even
compressed. A file that exceeds a limit is rejected. The fixed part of the limits, independent of
size, is shared by the files of one command or call.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum

from proton_bench.errors import ProfileFormatError, UsageError

__all__ = [
    "CELLS_OF_NUMBER",
    "OBJECTS_OF_COLUMN",
    "OBJECTS_OF_DEVICE",
    "OBJECTS_OF_REASON",
    "USUAL_TEXT",
    "DecodeBudget",
    "Limit",
    "decoding",
    "once_more",
    "one_command",
    "take",
    "take_table",
    "take_unpacked",
]

_DECODE_LIMIT = "PROTON_BENCH_DECODE_LIMIT"
_MIB = 1 << 20


class Limit(Enum):
    """A limit: its name for messages, the fixed part, and the part per byte."""

    __hash__ = object.__hash__  # of enumerations it is a function in Python

    BYTES = ("decompressed bytes", 128 * _MIB, 100.0)
    OBJECTS = ("texts, tracks and other objects", 300_000, 0.1)
    EVENTS = ("packets and events", 100_000, 2.0)
    ROWS = ("rows", 200_000, 0.5)
    CELLS = ("rows times columns", 6_000_000, 1.5)
    PATHS = ("names in call paths", 1_000_000, 0.5)
    TEXT = ("bytes of long texts of rows", 32 * _MIB, 8.0)
    SECONDS = ("seconds of processor time", 1.0, 0.05 / _MIB)


# Time limit in seconds per counted thing, several times the usual: slower decoding means repeated
# work.
_SECONDS_OF = {
    Limit.BYTES: 0.05 / _MIB,
    Limit.OBJECTS: 10e-6,
    Limit.EVENTS: 25e-6,
    Limit.ROWS: 20e-6,
    Limit.CELLS: 2e-6,
    Limit.PATHS: 5e-6,
    Limit.TEXT: 0.05 / _MIB,
}
_FULL_FILES = 2  # small files at their limits that one command may read
# What is shown with every row, or looks at all rows, counts for several objects.
OBJECTS_OF_COLUMN = 64
OBJECTS_OF_DEVICE = 32
OBJECTS_OF_REASON = 8
CELLS_OF_NUMBER = 5  # of a vector
# Bytes of a text. A file holds each text once, but output repeats it for every row that has it.
USUAL_TEXT = 256
# Packets and events that a byte of a packed stream may hold, and how much unused allowance may add
# up. Without this bound, noise at the start of a file would pay for a bomb at its end. Timelines
# have up to 0.8 per byte.
_STREAMED, _MOST_SAVED = 2.0, 100_000.0


class DecodeBudget:
    """The remaining budget of one file.

    Args:
        size: Bytes of the file.
        source: Its name, for messages.

    Raises:
        UsageError: The environment variable is not a number.
    """

    def __init__(self, size: int, source: str) -> None:
        self.source = source
        factor = _factor()
        shared = _shared.get()
        self._earned = {each: factor * each.value[2] * size for each in Limit}
        self._most = {}
        for each, earned in self._earned.items():
            free = factor * each.value[1]
            self._most[each] = earned + (free if shared is None else min(free, shared[each]))
        self._left = dict(self._most)
        self._ends = 0.0
        self._factor = factor
        self._saved: float | None = None  # events of a packed stream

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count this thread's processor time; nothing is decoded outside such blocks."""
        self._ends = time.thread_time() + self._left[Limit.SECONDS]
        try:
            yield
        finally:
            self._left[Limit.SECONDS] = self._ends - time.thread_time()

    def take(self, limit: Limit, count: float) -> None:
        """Charge a limit and the time for it, and check the clock.

        Raises:
            ProfileFormatError: The file exceeds the limit or takes too long.
        """
        left = self._left[limit] = self._left[limit] - count
        if left < 0:
            raise self._spent(limit)
        more = self._factor * _SECONDS_OF[limit] * count
        for each in (self._earned, self._most):
            each[Limit.SECONDS] += more
        self._ends += more
        if limit is Limit.EVENTS and self._saved is not None:
            self._saved -= count
            if self._saved < 0:
                raise ProfileFormatError(
                    f"{self.source}: a part of it has more {limit.value[0]} per compressed byte "
                    f"than recordings do; if you trust the file, set {_DECODE_LIMIT}=10"
                )
        self.look()

    def unpacked(self, packed: int, found: int) -> None:
        """Charge bytes of a compressed stream; events of each part have a limit by its size.

        Args:
            packed: Bytes of the file that were read since the last time.
            found: Bytes that came out of them.

        Raises:
            ProfileFormatError: The stream exceeds its limit, here or in total.
        """
        most = self._factor * _MOST_SAVED
        saved = most if self._saved is None else self._saved
        self._saved = min(saved + self._factor * _STREAMED * packed, most)
        self.take(Limit.BYTES, found)

    def once_more(self) -> Callable[[], None]:
        """See `once_more`."""
        before = dict(self._left)  # its time is set only when `running` ends
        return lambda: self._left.update(before)

    def settle(self) -> None:
        """Charge the shared budget of a command with this file's excess over its size."""
        shared = _shared.get()
        if shared is not None:
            for each, left in self._left.items():
                beyond = self._most[each] - left - self._earned[each]
                shared[each] = max(0.0, shared[each] - max(0.0, beyond))

    @property
    def is_late(self) -> bool:
        """Whether the file has taken too long."""
        return time.thread_time() > self._ends

    def look(self) -> None:
        """Raise ProfileFormatError if the file has taken too long."""
        if self.is_late:
            raise self._spent(Limit.SECONDS)

    def _spent(self, limit: Limit) -> ProfileFormatError:
        return ProfileFormatError(
            f"{self.source}: a file of its size may decode to {self._most[limit]:.3g} "
            f"{limit.value[0]} here, but it has more; if you trust the file, set "
            f"{_DECODE_LIMIT}=10 to raise all limits tenfold"
        )


_current: ContextVar[DecodeBudget | None] = ContextVar("decode_budget", default=None)
_shared: ContextVar[dict[Limit, float] | None] = ContextVar("shared_budget", default=None)


@contextmanager
def one_command() -> Iterator[None]:
    """Make the files read in the block share the fixed part of the limits.

    A block within such a block shares with the outer one. Functions that read several files carry
    it as a decorator.

    Raises:
        UsageError: The environment variable is not a number.
    """
    if _shared.get() is not None:
        yield
        return
    factor = _factor()
    free = {each: factor * _FULL_FILES * each.value[1] for each in Limit}
    free[Limit.SECONDS] /= _FULL_FILES  # the fixed part is for one command
    token = _shared.set(free)
    try:
        yield
    finally:
        _shared.reset(token)


@contextmanager
def decoding(size: int, source: str) -> Iterator[DecodeBudget]:
    """Return the budget of the file that is being read, or a new one.

    Args:
        size: Bytes of the file.
        source: Its name, for messages.
    """
    outer = _current.get()
    if outer is not None:
        yield outer
        return
    budget = DecodeBudget(size, source)
    token = _current.set(budget)
    try:
        with budget.running():
            yield budget
    finally:
        _current.reset(token)
        budget.settle()


def take(limit: Limit, count: float) -> None:
    """Charge the budget of the file that is being read; see `DecodeBudget.take`."""
    budget = _current.get()
    if budget is not None:
        budget.take(limit, count)


def once_more() -> Callable[[], None]:
    """Return what gives back later charges, but for time: a file that is read again counts once."""
    budget = _current.get()
    return budget.once_more() if budget is not None else lambda: None


def take_table(rows: int, columns: int) -> None:
    """Charge rows, columns and their cells; see `DecodeBudget.take`."""
    take(Limit.ROWS, rows)
    take(Limit.OBJECTS, OBJECTS_OF_COLUMN * columns)
    take(Limit.CELLS, rows * columns)


def take_unpacked(packed: int, found: int) -> None:
    """Charge bytes of a compressed stream; see `DecodeBudget.unpacked`."""
    budget = _current.get()
    if budget is not None:
        budget.unpacked(packed, found)


def _factor() -> float:
    text = os.environ.get(_DECODE_LIMIT, "1")
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not factor > 0:
        raise UsageError(
            f"{_DECODE_LIMIT}={text!a} is not a factor: give a number above 0, such as 10"
        )
    return factor
