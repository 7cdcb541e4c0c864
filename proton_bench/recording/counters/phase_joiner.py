"""Counters of phases that are over, joined while the program runs.

The native writer leaves a phase alone until its bursts are joined, which takes Python and SciPy. A
thread of the process does that, beside the program's own.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol

from proton_bench.recording.counters.store import CounterSession, store_phase

__all__ = ["PhaseJoiner", "PhasedSession"]

_PERIOD_S = 0.1  # the native writer looks for phases as often
_MAX_FORK_WAIT_S = 1.0

# Held while a phase is joined, so that a forked child inherits no lock of an import or a library.
_joining = threading.Lock()
_forking_thread: int | None = None  # that holds it


class PhasedSession(CounterSession, Protocol):
    """What joining needs of a native session that writes phases while it records."""

    def next_to_join(self) -> int | None:
        """Return a phase that waits to be joined; those with bursts do from the first call on."""

    def end_joins(self) -> None:
        """Have no phase wait any more."""


class PhaseJoiner:
    """Joins the phases of one session, on a thread that runs until `end`.

    Attributes:
        problem: Why the first phase that could not be joined has no counters; "" if all could.
    """

    def __init__(self, session: PhasedSession, *, has_timeline: bool) -> None:
        """Start the thread.

        Args:
            session: A session that is not active yet.
            has_timeline: Also add the samples to the session's timeline.
        """
        self.problem = ""
        self._session = session
        self._has_timeline = has_timeline
        self._ended = threading.Event()
        session.next_to_join()
        self._thread = threading.Thread(target=self._run, name="proton_bench phases", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Wait for the thread, which leaves what is not joined yet; those phases still wait."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(_PERIOD_S):
            while not self._ended.is_set() and (phase := self._session.next_to_join()) is not None:
                self._join(phase)

    def _join(self, phase: int) -> None:
        with _joining:
            problem = store_phase(self._session, phase, has_timeline=self._has_timeline)
        self.problem = self.problem or problem


def _before_fork() -> None:
    global _forking_thread
    if _joining.acquire(timeout=_MAX_FORK_WAIT_S):
        _forking_thread = threading.get_ident()


def _after_fork_in_parent() -> None:
    global _forking_thread
    if _forking_thread == threading.get_ident():
        _forking_thread = None
        _joining.release()


def _after_fork_in_child() -> None:
    global _forking_thread, _joining
    _joining, _forking_thread = threading.Lock(), None


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
