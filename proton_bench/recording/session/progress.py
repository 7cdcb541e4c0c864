"""Says on stderr that something takes its time, as long as it does."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable

__all__ = ["Progress"]


def _write_line(line: str) -> None:
    # The process' own stream: the target may have replaced or closed sys.stderr.
    if sys.__stderr__ is not None:
        with contextlib.suppress(OSError, ValueError):
            sys.__stderr__.write(line)
            sys.__stderr__.flush()


class Progress:
    """Context manager that prints a line every few seconds while its block runs.

    Args:
        doing: What takes its time, e.g. ``writing x``.
        interval_s: Seconds before the first line and between two lines.
        write: Takes each line; stderr by default.
    """

    def __init__(
        self,
        doing: str,
        *,
        interval_s: float = 2.0,
        write: Callable[[str], None] = _write_line,
    ) -> None:
        self._doing = doing
        self._interval_s = interval_s
        self._write = write
        self._begun = threading.Event()
        self._done = threading.Event()
        self._watcher: threading.Thread | None = None

    def arm(self) -> None:
        """Start the watching thread early; from Python 3.12 on none starts during shutdown.

        Where no thread can be started, the work goes on without notices.
        """
        if self._watcher is not None:
            return
        # AttributeError: the target deleted sys.excepthook.
        with contextlib.suppress(RuntimeError, AttributeError):
            watcher = threading.Thread(target=self._watch, name="proton-progress", daemon=True)
            watcher.start()
            self._watcher = watcher

    def __enter__(self) -> Progress:
        """Begin the work."""
        self.arm()
        self._begun.set()
        return self

    def __exit__(self, *exc_details: object) -> None:
        """End the work; no line comes after this."""
        self._done.set()
        if self._watcher is not None and self._watcher.is_alive():
            self._watcher.join()

    def _watch(self) -> None:
        self._begun.wait()
        seconds = 0.0
        while not self._done.wait(self._interval_s):
            seconds += self._interval_s
            self._write(f"proton: {self._doing}... {seconds:.0f} s\n")
