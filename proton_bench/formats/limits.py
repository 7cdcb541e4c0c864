"""Limits of reading, so that a small file cannot exhaust memory or time.

What may come out of a file grows with its size. A file with more is rejected.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from proton_bench.errors import ProfileFormatError, UsageError

_VARIABLE = "PROTON_BENCH_DECODE_LIMIT"
_MIB = 1 << 20
# Recordings unpack to at most 20 times their size, and have up to 0.8 events per packed byte.
_FREE_BYTES, _BYTES_OF_BYTE = 128 * _MIB, 100
_FREE_ITEMS, _ITEMS_OF_BYTE = 1_000_000, 4
_FREE_S, _S_OF_MIB = 10.0, 4.0
_BYTES_OF_CELL = 16
_ITEMS_OF_COLUMN = 50


class Limits:
    """What may still come out of a file.

    Args:
        size: Bytes of the file.
        source: Its name, for messages.

    Raises:
        UsageError: The environment variable is not a number.
    """

    def __init__(self, size: int, source: str) -> None:
        factor = _factor()
        self.source = source
        self._bytes = factor * (_FREE_BYTES + _BYTES_OF_BYTE * size)
        self._items = factor * (_FREE_ITEMS + _ITEMS_OF_BYTE * size)
        self._seconds = factor * (_FREE_S + _S_OF_MIB * size / _MIB)
        self._ends_s = time.thread_time() + self._seconds

    def take_bytes(self, count: int) -> None:
        """Charge bytes that came out of compression, or that a table or long texts need.

        Raises:
            ProfileFormatError: The file has too many, or takes too long.
        """
        self._bytes -= count
        if self._bytes < 0:
            raise self._exceeded("more bytes come out of it than recordings of its size have")
        self.check_time()

    def take_items(self, count: int) -> None:
        """Charge rows, events, texts or other objects.

        Raises:
            ProfileFormatError: The file has too many, or takes too long.
        """
        self._items -= count
        if self._items < 0:
            raise self._exceeded("it has more rows, events or metrics than recordings of its size")
        self.check_time()

    @property
    def is_late(self) -> bool:
        """Whether the file has taken too much processor time."""
        return time.thread_time() > self._ends_s

    def check_time(self) -> None:
        """Raise ProfileFormatError if the file has taken too much processor time."""
        if self.is_late:
            raise self._exceeded(f"it takes more than {self._seconds:.0f} s of processor time")

    def _exceeded(self, what: str) -> ProfileFormatError:
        return ProfileFormatError(
            f"{self.source}: {what}; if you trust the file, set {_VARIABLE}=10 to raise the limits "
            "tenfold"
        )


_current: ContextVar[Limits | None] = ContextVar("limits_of_reading", default=None)


@contextmanager
def reading(size: int, source: str) -> Iterator[Limits]:
    """Return the limits of the file that is being read, or new ones.

    Args:
        size: Bytes of the file.
        source: Its name, for messages.
    """
    outer = _current.get()
    if outer is not None:
        yield outer
        return
    limits = Limits(size, source)
    token = _current.set(limits)
    try:
        yield limits
    finally:
        _current.reset(token)


def take_bytes(count: int) -> None:
    """Charge the file that is being read; see `Limits.take_bytes`."""
    limits = _current.get()
    if limits is not None:
        limits.take_bytes(count)


def take_items(count: int) -> None:
    """Charge the file that is being read; see `Limits.take_items`."""
    limits = _current.get()
    if limits is not None:
        limits.take_items(count)


def take_table(rows: int, columns: int) -> None:
    """Charge the rows and columns of a table, and its memory."""
    take_items(rows + _ITEMS_OF_COLUMN * columns)
    take_bytes(_BYTES_OF_CELL * rows * columns)


def _factor() -> float:
    text = os.environ.get(_VARIABLE, "1")
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not factor > 0:
        raise UsageError(f"{_VARIABLE}={text!a} is not a factor: give a number above 0, such as 10")
    return factor
