"""Writes files in one step.

A file is written under a new name in its folder, flushed to the disk and renamed. Readers see the
old file or the new one, and any number of processes may write one name at once. Native code of
recordings follows the same rules (``native/src/writer/file/scratch_file.h``).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from proton_bench.errors import OutputError
from proton_bench.support.streams import RawOutput, blamed, opened_special, stream_to

_SCRATCH_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC

FileState = tuple[int, int, int]


def file_state(path: Path) -> FileState | None:
    """Return what changes when a file is replaced, None if there is none."""
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_ino, facts.st_mtime_ns, facts.st_size


def write_file(file: Path, content: bytes | str) -> None:
    """Write a file, whole or not at all.

    A link stays a link; a device, a pipe or an open descriptor such as ``/dev/stdout`` is written
    to, not replaced.

    Args:
        file: The file.
        content: Its content; characters of a text that UTF-8 cannot express are escaped.

    Raises:
        OutputError: It cannot be written; what was there before still is.
    """
    if isinstance(content, str):
        content = content.encode("utf-8", "backslashreplace")
    with opened_output(file) as stream:
        stream.write(content)


@contextmanager
def opened_output(file: Path, *, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """Open a file that appears complete once the block ends, and not at all if it fails.

    Other errors of the block are passed on.

    Args:
        file: The file, as for `write_file`.
        mode: Permissions of a new file, reduced by the umask.

    Raises:
        OutputError: It cannot be written; what was there before still is.
    """
    with blamed(file):
        special = opened_special(file)
    if special is not None:
        # Replacing /dev/null would make it an ordinary file.
        with stream_to(special, file) as stream:
            yield stream
        return
    with blamed(file):
        place = os.path.realpath(file)
        scratch = os.path.join(os.path.dirname(place), f".proton-tmp-{os.urandom(8).hex()}")
        handle = os.open(scratch, _SCRATCH_FLAGS, mode)
    try:
        with stream_to(RawOutput(handle, file), file) as stream:
            yield stream
            stream.flush()
            with blamed(file):
                os.fsync(handle)
        with blamed(file):
            os.rename(scratch, place)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(scratch)
        raise


@contextmanager
def refused(what: str) -> Iterator[None]:
    """Turn an error of the file system into one that says what could not be done."""
    try:
        yield
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        where = f" ({error.filename!a})" if error.filename else ""
        raise OutputError(
            f"cannot {what}: {error.strerror or error}{where}; choose another folder, or free space"
        ) from None


def remove_files(folder: Path, names: Iterable[str]) -> None:
    """Remove files below a folder, and nothing else.

    A link on the way to a file is not followed, and a folder in the place of a file stays.

    Args:
        folder: The folder, which may be a link.
        names: Names of the files, relative to it.

    Raises:
        OSError: A file cannot be removed.
    """
    top = folder.resolve()
    for name in names:
        place = top / name
        if ".." in place.parts or not place.parent.resolve().is_relative_to(top):
            continue
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
            place.unlink()
