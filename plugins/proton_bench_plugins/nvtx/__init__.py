"""Sends scopes as NVTX ranges to the tool that receives NVTX calls, on request.

``PROTON_BENCH_NVTX_SCOPES=1``; the tool, such as nsys, names its library in
``NVTX_INJECTION64_PATH``. The ``cupti`` backend names libcupti there if the variable is not set.
That does not count as a tool, because it would hand the ranges back to us.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from proton_bench import _native
from proton_bench.plugin import SessionFacts, hookimpl
from proton_bench.recording.stderr import warn

VARIABLE = "PROTON_BENCH_NVTX_SCOPES"
INJECTION = "NVTX_INJECTION64_PATH"
_TRUE = ("1", "on", "true")

_sessions: set[int] = set()


@hookimpl
def proton_session_started(session: SessionFacts) -> None:
    """Send from the first session on."""
    if os.environ.get(VARIABLE, "").lower() not in _TRUE:
        return
    receiver = os.environ.get(INJECTION)
    if not _sessions and not (receiver and _native.send_nvtx(receiver)):
        warn(
            f"{VARIABLE} is set, but no tool receives NVTX ranges: run the program under a tool "
            f"that sets {INJECTION} (now {receiver or 'not set'})"
        )
        return
    _sessions.add(session.id)


@hookimpl
def proton_session_finished(session: SessionFacts, paths: Sequence[Path]) -> None:
    """Send no more after the last session."""
    del paths
    # A session whose file could not be written ends without this call.
    live = _sessions.intersection(_native.live_sessions()) - {session.id}
    if _sessions and not live:
        _native.send_nvtx(None)
    _sessions.intersection_update(live)
