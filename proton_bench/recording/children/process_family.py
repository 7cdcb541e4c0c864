"""Distinguishes processes of this program from others, by /proc."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

__all__ = ["strangers"]

_MOST_GENERATIONS = 64


def strangers(pids: Iterable[int]) -> list[int]:
    """Return the processes that are not this one, its ancestors or its descendants.

    A process that is not visible here, as from inside a container, is left out: its number may mean
    another process here, even this one.

    Args:
        pids: Numbers of processes.
    """
    own = os.getpid()
    ancestors = {own, *_ancestors(own)}
    found = []
    for pid in sorted(set(pids)):
        if _parent(pid) is None or pid in ancestors or own in _ancestors(pid):
            continue
        found.append(pid)
    return found


def _ancestors(pid: int) -> Iterator[int]:
    for _ in range(_MOST_GENERATIONS):
        parent = _parent(pid)
        if not parent:
            return
        yield parent
        pid = parent


def _parent(pid: int) -> int | None:
    """Return the parent of a process, 0 for none, or None where there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            # The name before it may hold anything, brackets too.
            return int(stream.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None
