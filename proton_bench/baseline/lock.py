"""Locks of the store: the kernel's (flock), which frees those of a killed process."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from proton_bench.errors import OutputError
from proton_bench.files import Folder

__all__ = ["LOCK", "held", "is_in_use", "shared"]

LOCK = "lock"
TIMEOUT_S = 30.0
_STEP_S = 0.02
_SHOWN_BYTES = 200


@contextmanager
def held(store: Folder) -> Iterator[None]:
    """Hold a store for this process alone; others wait, and can read who it is.

    Raises:
        UsageError: The lock is no plain file.
        OutputError: Another process holds the store for too long.
        OSError: The lock cannot be made.
    """
    handle = store.open_lock(LOCK)
    try:
        _take(handle, fcntl.LOCK_EX, store.path)
        _note(handle, f"{os.getpid()} {os.uname().nodename}\n")
        try:
            yield
        finally:
            _note(handle, "")
    finally:
        os.close(handle)


@contextmanager
def shared(folder: Path) -> Iterator[None]:
    """Hold a store together with other readers, so that who wants it alone waits.

    A store or lock that is not there or may not be opened is not held: then nobody writes it.

    Raises:
        UsageError: The store is no plain folder, or the lock is no plain file.
        OutputError: Another process holds the store for too long.
    """
    try:
        with Folder.open(folder) as store:
            handle = store.open_lock(LOCK, create=False)
    except OSError:
        yield
        return
    try:
        _take(handle, fcntl.LOCK_SH, folder)
        yield
    finally:
        os.close(handle)


def is_in_use(folder: Folder) -> bool:
    """Return whether a living process holds the folder; if none does, this process now does."""
    try:
        fcntl.flock(folder.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _take(handle: int, kind: int, store: Path) -> None:
    end = time.monotonic() + TIMEOUT_S
    while True:
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            left = end - time.monotonic()
            if left <= 0:
                raise OutputError(
                    f"{str(store / LOCK)!a} is held by {_holder(handle)}, for more than "
                    f"{TIMEOUT_S:g} s; wait until it has ended, or end it, and try again"
                ) from None
            time.sleep(min(_STEP_S, left))


def _holder(handle: int) -> str:
    """Return which process holds a lock; readers, and those of other programs, leave no number."""
    words = os.pread(handle, _SHOWN_BYTES, 0).decode("ascii", "replace").split()
    if len(words) == 2 and words[0].isdecimal():
        here = words[1] == os.uname().nodename
        if not here or os.path.exists(f"/proc/{words[0]}"):
            return f"process {words[0]}" + ("" if here else f" of machine {words[1]!a}")
    return "a process that left no number in it (`fuser` or `lslocks` show which)"


def _note(handle: int, text: str) -> None:
    """Say in the lock who holds it; where the disk is full, nobody is told."""
    with contextlib.suppress(OSError):
        os.ftruncate(handle, 0)
        os.pwrite(handle, text.encode(), 0)
