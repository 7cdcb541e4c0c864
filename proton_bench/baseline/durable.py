"""Writing so that a reader sees all or nothing, whenever the writer is killed.

What is being written stands in a scratch folder of the same file system and is moved into place by
one rename. Locks are the kernel's (flock), which frees those of a killed process.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from proton_bench.errors import OutputError

__all__ = ["is_in_use", "kept", "locked", "move", "refused", "replace", "write_new"]


@contextmanager
def refused(what: str) -> Iterator[None]:
    """Turn what the file system refuses into an error that says what could not be done."""
    try:
        yield
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        where = f" ({error.filename!a})" if error.filename else ""
        raise OutputError(
            f"cannot {what}: {error.strerror or error}{where}; choose another place, or free some"
        ) from None


@contextmanager
def locked(path: Path, *, create: bool = True) -> Iterator[None]:
    """Hold a file or folder for this process alone; others wait.

    Args:
        path: What to lock.
        create: Whether a file is created if it is not there; False for a folder.
    """
    flags = os.O_RDWR | os.O_CREAT if create else os.O_RDONLY
    handle = os.open(path, flags | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def kept(path: Path) -> Iterator[None]:
    """Hold a file together with other readers, so that who wants it alone waits.

    A file that is not there or may not be opened is not held: then nobody writes beside it.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        yield
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)


def is_in_use(folder: Path) -> bool:
    """Return whether a living process holds the folder."""
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def write_new(path: Path, content: bytes) -> None:
    """Write a file that is not there yet, down to the disk."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(handle)


def replace(path: Path, content: bytes, scratch: Path) -> None:
    """Put content in the place of a file.

    Args:
        path: The file.
        content: What it will hold.
        scratch: A file beside which nobody else writes, on the same file system.
    """
    try:
        write_new(scratch, content)
        os.replace(scratch, path)
    except OSError:
        scratch.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def move(folder: Path, place: Path) -> None:
    """Move a finished folder into place; what it holds is on the disk before its new name is."""
    _sync_folder(folder)
    os.rename(folder, place)
    _sync_folder(place.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
