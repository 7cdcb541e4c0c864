"""A lock that a forked child never inherits from another thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_MAX_WAIT_S = 1.0


class ForkLock:
    """A lock that a fork waits for, so that the child inherits no lock of what is done under it.

    A holder that does not let go must not block the program: after a second it forks all the same.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._forking_thread: int | None = None  # that holds it
        os.register_at_fork(
            before=self._before_fork,
            after_in_parent=self._after_fork_in_parent,
            after_in_child=self._after_fork_in_child,
        )

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock."""
        with self._lock:  # the one of now: a child has another
            yield

    def locked(self) -> bool:
        """Return whether a thread holds it."""
        return self._lock.locked()

    def _before_fork(self) -> None:
        if self._lock.acquire(timeout=_MAX_WAIT_S):
            self._forking_thread = threading.get_ident()

    def _after_fork_in_parent(self) -> None:
        if self._forking_thread == threading.get_ident():
            self._forking_thread = None
            self._lock.release()

    def _after_fork_in_child(self) -> None:
        self._lock, self._forking_thread = threading.Lock(), None
