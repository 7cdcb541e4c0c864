"""The calling thread's context, under upstream's submodule name."""

from __future__ import annotations

from proton_bench.flags import flags
from proton_bench.recording.session.session import numbered_session

__all__ = ["depth", "flags"]


def depth(session: int | None = 0) -> int | None:
    """Return how many open frames the calling thread has in a session.

    Args:
        session: Session number. States do not count.

    Returns:
        Scopes (with ``context="python"`` also Python frames), or None while no session is live.

    Raises:
        SessionError: The session does not exist.
    """
    if session is None or not flags.profiling_on:
        return None
    return numbered_session(session).core.context_depth()
