"""Ctrl-C while files are written."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def uninterrupted() -> Iterator[list[int]]:
    """Let a block that writes files come to its end: the second SIGINT ends the process.

    Only the main thread can do so. An ignored SIGINT stays ignored.

    Yields:
        The signal once it came, for the caller to act on after the block.
    """
    received: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        received.append(number)
        signal.signal(number, signal.SIG_DFL)

    before = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or before in (None, signal.SIG_IGN):
        yield received
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield received
    finally:
        signal.signal(signal.SIGINT, before)
