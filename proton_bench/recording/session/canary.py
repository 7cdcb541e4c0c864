"""Runs a session's canary when the target begins to use a device, and when it has ended.

The gate takes canaries for what the machine did: kernels below a scope of their own, and in the
provenance ``{"canary": {"sm_clock_hz": ..., "launches": ...}}`` or ``{"canary": {"missing": ...}}``
with the reason where a canary could not run.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from proton_bench.plugin.canary import Canary, Ticks
from proton_bench.recording.native import native
from proton_bench.recording.session.recording import Session

# The gate knows them by the same names.
CANARY_SCOPE = "<canary>"
WARM_UP_SCOPE = "<warm-up>"


class SessionCanary:
    """The canary of one session, where a backend of it has one; no failure of it gets out.

    Args:
        session: The session whose target is watched.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._process_id = os.getpid()
        self._counted: list[Ticks] = []
        self._problem = ""
        makers = [each.canary for each in session.plan.backends if each.canary is not None]
        if makers and "python" in session.plan.context.split("+"):
            self._problem = "call paths of Python frames have no scope that it could stand below"
            makers = []
        self._canary: Canary | None = None
        for maker in makers[:1]:
            try:
                self._canary = maker()
            except Exception as error:  # noqa: BLE001 - whatever it is, the target must not see it
                self._note(error)

    def begin(self) -> None:
        """Launch as soon as the target begins to use a device."""
        try:
            if self._canary is not None:
                self._canary.watch(self._launch)
        except Exception as error:  # noqa: BLE001
            self._note(error)

    def end(self) -> None:
        """Launch once more, and add what all launches counted to the session."""
        if os.getpid() != self._process_id:
            return
        canary = self._canary
        if canary is not None:
            self._launch()
            self._canary = None
            try:
                canary.unwatch()
            except Exception as error:  # noqa: BLE001
                self._note(error)
        facts = self._facts()
        if facts and self._session.is_live:
            self._session.add_facts({"canary": facts})

    def _facts(self) -> dict[str, Any]:
        cycles = sum(each.cycles for each in self._counted)
        ns = sum(each.ns for each in self._counted)
        if cycles > 0 and ns > 0:
            # Sums, which the ticks of the timer do not bias.
            launches = sum(each.launches for each in self._counted)
            return {"sm_clock_hz": 1e9 * cycles / ns, "launches": launches}
        return {"missing": self._problem} if self._problem else {}

    def _launch(self) -> None:
        """Launch where no scope of the target would get the canary's time."""
        canary = self._canary
        if canary is None or os.getpid() != self._process_id or not self._session.is_active:
            return
        if native.any_capture_open():
            self._problem = self._problem or "graphs were captured whenever it was due"
            return
        if not self._is_at_top():
            self._problem = self._problem or "scopes of the target were open whenever it was due"
            return
        try:
            found = canary.launch(native.scope, (CANARY_SCOPE, WARM_UP_SCOPE))
        except Exception as error:  # noqa: BLE001
            self._note(error)
        else:
            self._counted += [found] if found is not None else []

    def _is_at_top(self) -> bool:
        """Say whether nothing is open; other threads may stand below scopes of the main one."""
        is_main = threading.current_thread() is threading.main_thread()
        return is_main and not (self._session.core.context_depth() or native.state_depth())

    def _note(self, error: Exception) -> None:
        self._problem = f"{type(error).__name__}: {error}"
