"""Output streams of a command: a new file, a device, a pipe, a descriptor.

Errors of an output name it; other errors do not. A pipe whose reader stops does not block a command
forever, and a terminal gets no control characters.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import io
import os
import re
import select
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from proton_bench.errors import OutputError, ProtonError
from proton_bench.support.text import visible_lines

_READER_WAIT_S, _READER_PAUSE_S = 5.0, 0.01
# How long the reader of a named pipe may take until there is room for more.
_ROOM_WAIT_MS = 30_000
# An open descriptor of a process; /dev/stdout and /dev/fd/3 lead there.
_DESCRIPTOR = re.compile(r"(/proc/\d+)(?:/task/\d+)?/fd/(\d{1,9})")
_MOST_LINKS = 40


def unwritable(file: Path | str, error: Exception) -> OutputError:
    """Return the error that says why a file cannot be written."""
    reason = getattr(error, "strerror", None) or str(error)
    return OutputError(f"cannot write {str(file)!a}: {reason}; choose another file")


@contextmanager
def blamed(file: Path | None) -> Iterator[None]:
    """Turn an error of the file system into one that names the file; None leaves it."""
    try:
        yield
    except ProtonError:
        raise
    except (OSError, ValueError) as error:  # ValueError: not the name of a file
        if file is None:
            raise
        raise unwritable(file, error) from None


class RawOutput(io.FileIO):
    """Writes directly to a descriptor.

    Args:
        handle: The descriptor, which becomes this stream's.
        named: Name in errors of writing; None leaves them as they are.
        wait_ms: How long to wait for room in a non-blocking pipe; None means forever.
    """

    def __init__(self, handle: int, named: Path | None, wait_ms: int | None = None) -> None:
        super().__init__(handle, "wb")
        self._named = named
        self._wait_ms = wait_ms
        self._error: OSError | None = None
        # No byte of a profile may control a terminal.
        decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._decoder = decoder if self.isatty() else None

    def write(self, data: Any) -> int:
        """Write some of it; after a failure nothing more is written."""
        try:
            if self._error is not None:
                raise self._error
            if self._decoder is None:
                return self._written(data)
            text = visible_lines(self._decoder.decode(bytes(data))).encode()
            while text:
                text = text[self._written(text) :]
            return len(data)
        except OSError as error:
            self._error = error
            with blamed(self._named):
                raise

    def give_up(self) -> None:
        """Write nothing more, not even the content of a buffer in front of this stream."""
        self._error = OSError(errno.ECANCELED, os.strerror(errno.ECANCELED))

    def _written(self, data: Any) -> int:
        while True:
            try:
                return os.write(self.fileno(), data)
            except BlockingIOError:
                waiting = select.poll()
                waiting.register(self.fileno(), select.POLLOUT)
                if not waiting.poll(self._wait_ms):
                    raise OSError(
                        errno.ETIMEDOUT, "it is a pipe whose reader stopped reading"
                    ) from None


@contextmanager
def stream_to(raw: RawOutput, named: Path | None) -> Iterator[IO[bytes]]:
    """Yield a buffered stream; all bytes are written once the block ends."""
    stream = io.BufferedWriter(raw)
    try:
        yield cast("IO[bytes]", stream)
        stream.flush()
    except BaseException:
        raw.give_up()
        with contextlib.suppress(OSError):
            stream.close()
        raise
    with blamed(named):
        stream.close()


def opened_special(file: Path) -> RawOutput | None:
    """Open a device, pipe, socket or descriptor for writing; None for a file or a free name."""
    found = _descriptor_of(file)
    if found is not None and found[1] == os.path.realpath("/proc/self"):
        # Opening it again would start at the beginning of its file, and a rename would replace
        # that.
        return RawOutput(os.dup(int(found[2])), file)
    if found is None and not _is_special(file):
        return None
    handle = _open_special(file)
    if found is None and stat.S_ISFIFO(os.fstat(handle).st_mode):
        return RawOutput(handle, file, _ROOM_WAIT_MS)
    os.set_blocking(handle, True)
    return RawOutput(handle, file)


def _descriptor_of(file: Path) -> re.Match[str] | None:
    """Return the descriptor that a name leads to, maybe through links."""
    place = os.fspath(file)
    for _ in range(_MOST_LINKS):
        folder, name = os.path.split(place)
        folder = os.path.realpath(folder)
        found = _DESCRIPTOR.fullmatch(f"{folder}/{name}")
        if found is not None:
            return found
        try:
            place = os.path.join(folder, os.readlink(os.path.join(folder, name)))
        except OSError:
            return None
    return None


def _is_special(file: Path) -> bool:
    """Return whether the name leads to a device, pipe or socket, maybe through a link."""
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return not stat.S_ISREG(mode)


def _open_special(file: Path) -> int:
    """Open it without blocking; the reader of a named pipe has a few seconds."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    deadline = time.monotonic() + _READER_WAIT_S
    while True:
        try:
            return os.open(file, flags)
        except OSError as error:
            if error.errno != errno.ENXIO or not stat.S_ISFIFO(file.stat().st_mode):
                raise
            if time.monotonic() >= deadline:
                raise OSError(error.errno, "it is a pipe that nothing reads") from None
            time.sleep(_READER_PAUSE_S)
