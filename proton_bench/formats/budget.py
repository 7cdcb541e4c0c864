"""How much a file may decode to, so that a small file can take neither the memory nor the hour.

Each limit grows with the size of the file: what a recording writes takes some bytes for each row
and event, also where it is compressed. A file that goes beyond one is refused.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum

from proton_bench.errors import ProfileFormatError, UsageError

__all__ = ["DECODE_LIMIT", "DecodeBudget", "Limit", "decoding", "take"]

DECODE_LIMIT = "PROTON_BENCH_DECODE_LIMIT"
_MIB = 1 << 20


class Limit(Enum):
    """What is counted: its name for messages, how much any file may have, and more per byte."""

    BYTES = ("decompressed bytes", 128 * _MIB, 100.0)
    OBJECTS = ("texts, tracks and other objects", 300_000, 0.1)
    EVENTS = ("packets and events", 100_000, 1.0)
    ROWS = ("rows", 100_000, 3.0)
    CELLS = ("rows times columns", 12_000_000, 3.0)
    PATHS = ("names in call paths", 1_000_000, 2.0)
    SECONDS = ("seconds of processor time", 1.0, 8.0 / _MIB)


class DecodeBudget:
    """What one file may still decode to.

    Args:
        size: Bytes of the file.
        source: Its name, for messages.

    Raises:
        UsageError: The environment asks for limits that are no number.
    """

    def __init__(self, size: int, source: str) -> None:
        self.source = source
        factor = _factor()
        self._most = {each: factor * (each.value[1] + each.value[2] * size) for each in Limit}
        self._left = dict(self._most)
        self._ends = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count processor time; what is done between two such blocks is no decoding."""
        self._ends = time.process_time() + self._left[Limit.SECONDS]
        try:
            yield
        finally:
            self._left[Limit.SECONDS] = self._ends - time.process_time()

    def take(self, limit: Limit, count: float) -> None:
        """Use up some of a limit, and look at the clock.

        Raises:
            ProfileFormatError: The file decodes to more than that, or for too long.
        """
        left = self._left[limit] = self._left[limit] - count
        if left < 0:
            raise self._spent(limit)
        self.look()

    @property
    def is_late(self) -> bool:
        """Whether the file has taken too long."""
        return time.process_time() > self._ends

    def look(self) -> None:
        """Raise ProfileFormatError if the file has taken too long."""
        if self.is_late:
            raise self._spent(Limit.SECONDS)

    def _spent(self, limit: Limit) -> ProfileFormatError:
        return ProfileFormatError(
            f"{self.source}: a file of its size may decode to {self._most[limit]:.10g} "
            f"{limit.value[0]}, and it has more; if it is no attack, set {DECODE_LIMIT}=10 to "
            "raise all limits tenfold"
        )


_current: ContextVar[DecodeBudget | None] = ContextVar("decode_budget", default=None)


@contextmanager
def decoding(size: int, source: str) -> Iterator[DecodeBudget]:
    """Give the budget of the file that is being read, a new one where nothing is being read.

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


def take(limit: Limit, count: float) -> None:
    """Use up some of what the file that is being read may decode to; see `DecodeBudget.take`."""
    budget = _current.get()
    if budget is not None:
        budget.take(limit, count)


def _factor() -> float:
    text = os.environ.get(DECODE_LIMIT, "1")
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not factor > 0:
        raise UsageError(f"{DECODE_LIMIT}={text!a} is no factor: give a number above 0, such as 10")
    return factor
