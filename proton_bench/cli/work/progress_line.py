"""One line on a terminal that says what a slow command is doing."""

from __future__ import annotations

import sys
from threading import Lock, Timer
from types import TracebackType
from typing import IO, Self

from proton_bench.support.text import raw

__all__ = ["ProgressLine"]

_PATIENCE_S = 1.0
_CLEAR = "\r\x1b[K"


class ProgressLine:
    """Shows the step of a command once it has taken a second; nothing where no terminal is.

    Args:
        stream: Where to write; stderr by default.
        patience_s: After how many seconds the line appears.
    """

    def __init__(self, stream: IO[str] | None = None, patience_s: float = _PATIENCE_S) -> None:
        # The steps are ours; the line is moved by sequences that other text must not have.
        self._stream = raw(sys.stderr if stream is None else stream)
        self._step = ""
        self._is_shown = False
        self._lock = Lock()
        self._timer = Timer(patience_s, self._appear)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        """Begin to wait."""
        if self._stream.isatty():
            self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the line."""
        self._timer.cancel()
        with self._lock:
            if self._is_shown:
                self._stream.write(_CLEAR)
                self._stream.flush()
            self._is_shown = False

    def step(self, text: str) -> None:
        """Say what is done now, such as ``reading``."""
        with self._lock:
            self._step = text
            self._write()

    def _appear(self) -> None:
        with self._lock:
            self._is_shown = not self._timer.finished.is_set()
            self._write()

    def _write(self) -> None:
        if self._is_shown:
            self._stream.write(f"{_CLEAR}proton: {self._step} ...")
            self._stream.flush()
