"""Input files and pipes. None of them can block a command forever."""

from __future__ import annotations

import errno
import os
import select
import stat
from pathlib import Path
from typing import IO

from proton_bench.errors import UsageError
from proton_bench.support.text import did_you_mean, visible

# A pipe instead of a file must not block, and a terminal must not become our controlling terminal.
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# How long a writer of a named pipe may take for its next piece.
_PIPE_WAIT_MS = 5000
_MOST_BESIDE = 2000  # names that are compared
_PIPE_BYTES, _MOST_PIPED = 1 << 20, 1 << 30


def read_file(file: Path) -> bytes:
    """Return the content of a file; a pipe is read to its end.

    Raises:
        OSError: It cannot be read, is a folder or device, or a named pipe without a writer, or
            whose writer stops.
    """
    handle = os.open(file, _FLAGS)
    try:
        mode = os.fstat(handle).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise OSError(errno.EINVAL, "it is not a file")
        if stat.S_ISFIFO(mode):
            # The writer of a shell pipe may compute for long; its end closes the pipe.
            is_of_shell = os.path.realpath(file).startswith("/proc/")
            return _piped(handle, None if is_of_shell else _PIPE_WAIT_MS)
        with open(handle, "rb", buffering=0, closefd=False) as stream:
            return stream.read()
    finally:
        os.close(handle)


def open_file(file: Path) -> IO[bytes]:
    """Open a file that is read in pieces, or more than once.

    Raises:
        OSError: It cannot be read, or is not a file: a pipe can be read only once.
    """
    handle = os.open(file, _FLAGS)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return open(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    raise OSError(
        errno.EINVAL, "it is not a regular file, which is needed here: write it to a file first"
    )


def unreadable(file: Path, error: Exception, kind: str = "file") -> UsageError:
    """Return the error that says why a file cannot be read.

    Args:
        file: Which one.
        error: The error of reading it.
        kind: What to name instead.
    """
    reason = getattr(error, "strerror", None) or str(error)
    meant = did_you_mean(file.name, _beside(file)) if isinstance(error, FileNotFoundError) else ""
    return UsageError(
        f"cannot read {visible(file)}: {reason}{meant or f'; name a {kind} that exists'}"
    )


def _beside(file: Path) -> list[str]:
    try:
        return os.listdir(file.parent)[:_MOST_BESIDE]
    except (OSError, ValueError):
        return []


def _piped(handle: int, wait_ms: int | None) -> bytes:
    """Return the content of a pipe until its end; each piece has to arrive in time."""
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    pieces: list[bytes] = []
    size = 0
    while True:
        if not waiting.poll(wait_ms):
            what = "a pipe whose writer stopped" if size else "a pipe without a writer"
            raise OSError(errno.ETIMEDOUT, f"it is {what}")
        piece = os.read(handle, _PIPE_BYTES)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        size += len(piece)
        if size > _MOST_PIPED:
            raise OSError(errno.EFBIG, f"the pipe has more than {_MOST_PIPED >> 30} GiB")
