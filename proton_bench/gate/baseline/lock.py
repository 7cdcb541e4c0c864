"""Locks of the store: flock, which the kernel releases when a process is killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from proton_bench.errors import OutputError
from proton_bench.support.files import Folder

__all__ = ["LOCK", "held", "is_in_use", "shared"]

LOCK = "lock"
TIMEOUT_S = 30.0
_STEP_S = 0.02
_SHOWN_BYTES = 200


@contextmanager
def held(store: Folder) -> Iterator[None]:
    """Lock a store exclusively; other processes wait, and can read which process holds it.

    Raises:
        UsageError: The lock is not a plain file.
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
    """Lock a store together with other readers, so that exclusive users wait.

    A store or lock that does not exist or cannot be opened is not locked: it cannot be written
    then.

    Raises:
        UsageError: The store is not a plain folder, or the lock is not a plain file.
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
    """Return whether a running process holds the folder; if none does, this process now does."""
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
                    f"{TIMEOUT_S:g} s; wait until that process has ended, or end it, and try again"
                ) from None
            time.sleep(min(_STEP_S, left))


def _holder(handle: int) -> str:
    """Return which process holds a lock: from the kernel, else from the number in it."""
    holders = _holders_of(os.fstat(handle).st_ino)
    if holders:
        return f"process {', '.join(holders)}"
    words = os.pread(handle, _SHOWN_BYTES, 0).decode("ascii", "replace").split()
    if len(words) == 2 and words[0].isdecimal():
        return f"process {words[0]} of machine {words[1]!a}"
    return "an unknown process elsewhere"  # readers do not write one


def _holders_of(inode: int) -> list[str]:
    try:
        locks = Path("/proc/locks").read_text(encoding="ascii", errors="replace")
    except OSError:
        return []
    # 1: FLOCK ADVISORY WRITE <pid> <major>:<minor>:<inode> 0 EOF; waiting ones have an arrow.
    rows = [line.split() for line in locks.splitlines()]
    return [
        row[4]
        for row in rows
        if len(row) > 5
        and row[4] != "0"
        and row[1] == "FLOCK"
        and row[4].isdecimal()
        and row[5].endswith(f":{inode}")
    ]


def _note(handle: int, text: str) -> None:
    """Write the holder into the lock, unless the disk is full."""
    with contextlib.suppress(OSError):
        os.ftruncate(handle, 0)
        os.pwrite(handle, text.encode(), 0)
