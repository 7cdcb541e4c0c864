"""Signals that end an experiment cleanly: its process is ended, its runs are kept."""

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
    """Turn the first signal into `InterruptedExperimentError`; later ones are ignored.

    This works only on the main thread. Ignored signals stay ignored.
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
