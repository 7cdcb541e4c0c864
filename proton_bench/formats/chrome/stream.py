"""The bytes of a timeline in Chrome's format, plain or compressed by gzip."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from proton_bench.formats.base import corrupt
from proton_bench.formats.chrome.split import Readable
from proton_bench.formats.limits import reading, take_bytes
from proton_bench.model.origin import is_partial_name
from proton_bench.support.inputs import open_file
from proton_bench.support.text import visible

__all__ = ["GZIP", "opened_trace", "unpacked"]

GZIP = b"\x1f\x8b"


@contextmanager
def opened_trace(file: Path) -> Iterator[Readable]:
    """Open a timeline, plain or compressed by gzip; one called partial may end anywhere."""
    with open_file(file) as stream:
        size = file.stat().st_size
        with reading(size, visible(file)):
            yield unpacked(stream, visible(file))


def unpacked(stream: IO[bytes], source: str) -> Readable:
    """Return the content of a file from its start; arguments as for `Format.decode`."""
    stream.seek(0)
    is_packed = stream.read(2) == GZIP
    stream.seek(0)
    return _Unpacked(stream, source) if is_packed else stream


class _Unpacked:
    """A compressed stream, which may end where it was cut off."""

    def __init__(self, stream: IO[bytes], source: str) -> None:
        self._stream = gzip.GzipFile(fileobj=_Watched(stream))
        self._source = source

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, none at the end.

        Raises:
            ProfileFormatError: They are damaged, or more than a file of its size may have.
        """
        pieces: list[bytes] = []
        try:
            # Reads grow with a value that is larger than a block.
            while size > 0 and (piece := self._stream.read1(size)):
                pieces.append(piece)
                size -= len(piece)
                take_bytes(len(piece))
        except EOFError as error:
            if not is_partial_name(self._source):
                raise corrupt(self._source, f"gzip: {error}") from None
        except (zlib.error, gzip.BadGzipFile) as error:
            raise corrupt(self._source, f"gzip: {error}") from None
        return b"".join(pieces)


class _Watched:
    """A compressed stream that looks at the clock: members may hold nothing at all."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes.

        Raises:
            ProfileFormatError: The file has taken too long.
        """
        take_bytes(0)
        return self._stream.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
