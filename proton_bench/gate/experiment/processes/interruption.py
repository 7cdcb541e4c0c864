"""Signals that end an experiment in good order: its process is ended, its runs are kept."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

from proton_bench.errors import InterruptedExperimentError

__all__ = ["interruptible"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Turn signals into `InterruptedExperimentError`, once; later ones do not disturb the end.

    Only on the main thread; elsewhere nothing is changed. A signal that is ignored stays so.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        del frame
        for each in taken:
            signal.signal(each, signal.SIG_IGN)
        raise InterruptedExperimentError(signal.Signals(number))

    taken = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
    former = {}
    try:
        for each in taken:
            former[each] = signal.signal(each, interrupt)
    except ValueError:  # not the main thread
        taken = []
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
