"""One measured process at a time on this machine, for all experiments of this user."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator

import platformdirs

from proton_bench.errors import OutputError

__all__ = ["machine_turn"]


@contextlib.contextmanager
def machine_turn(on_wait: Callable[[], None]) -> Iterator[int]:
    """Wait for this process's turn and keep it for the block.

    Yields a file descriptor for the measured process to inherit, so that if this process is killed,
    the turn lasts until the measured process ends.

    Args:
        on_wait: Called once if another process has its turn.

    Raises:
        OutputError: The lock cannot be written.
    """
    folder = platformdirs.user_cache_dir("proton_bench")
    try:
        os.makedirs(folder, exist_ok=True)
        # The folder may be shared by machines.
        name = os.path.join(folder, f"turn-{os.uname().nodename}.lock")
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise OutputError(f"cannot write {folder!a}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            yield descriptor
        finally:
            # Also for the process that inherited it: its remaining children have no turn.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)
