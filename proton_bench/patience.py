"""A bound on processor time, for work whose length others decide."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from proton_bench.errors import UsageError

__all__ = ["bounded_time"]


@contextmanager
def bounded_time(seconds: float, message: str) -> Iterator[None]:
    """Interrupt the block once it has taken so much processor time.

    A timer's signal does it, which Python's regular expressions look for while they search. Threads
    other than the main one get no signals, and have no bound.

    Args:
        seconds: Processor time of this process.
        message: What the error says.

    Raises:
        UsageError: The time is over.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise UsageError(message)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGVTALRM, interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
