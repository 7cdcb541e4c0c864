"""Counters of phases that are over, joined while the program runs.

The native writer leaves a phase alone until its bursts are joined, which takes Python and SciPy. A
thread of the process does that, beside the program's own.
"""

from __future__ import annotations

import threading
from typing import Protocol

from proton_bench.recording.counters.store import CounterSession, store_phase
from proton_bench.support.fork_lock import ForkLock

_PERIOD_S = 0.1  # the native writer looks for phases as often

# Held while a phase is joined, so that a forked child inherits no lock of an import or a library.
_joining = ForkLock()


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
        with _joining.held():
            problem = store_phase(self._session, phase, has_timeline=self._has_timeline)
        self.problem = self.problem or problem
