"""Data of a running session, phase by phase, under upstream's submodule name."""

from __future__ import annotations

import json
from typing import Any

from proton_bench.errors import SessionError
from proton_bench.flags import flags
from proton_bench.recording.native import native
from proton_bench.recording.session.conversion import encode_phase
from proton_bench.recording.session.session import numbered_session

__all__ = ["advance_phase", "clear", "flags", "get", "get_msgpack", "is_phase_complete"]

_MAX_PHASES = 2**32


def get(session: int | None = 0, phase: int = 0) -> Any:
    """Return a phase as the nested lists and dicts of a ``.hatchet`` file.

    Nothing is flushed: call ``deactivate(session, flushing=True)`` first for work still running.

    Args:
        session: Session number; None returns None.
        phase: Number of the phase.

    Raises:
        SessionError: The session or phase does not exist.
    """
    encoded = _encoded(session, phase, "hatchet")
    return None if encoded is None else json.loads(encoded)


def get_msgpack(session: int | None = 0, phase: int = 0) -> bytes | None:
    """Return a phase as the bytes of a ``.hatchet_msgpack`` file.

    Args:
        session: Session number; None returns None.
        phase: Number of the phase.

    Raises:
        SessionError: The session or phase does not exist.
    """
    return _encoded(session, phase, "hatchet_msgpack")


def advance_phase(session: int | None = 0) -> int | None:
    """Begin a new phase; later launches belong to it.

    Args:
        session: Session number; None returns None.

    Returns:
        Number of the new phase.

    Raises:
        SessionError: The session does not exist.
    """
    core = _core(session)
    return None if core is None else core.advance_phase()


def is_phase_complete(session: int | None = 0, phase: int = 0) -> bool:
    """Return whether every record of a phase has arrived; always False for the current phase.

    Args:
        session: Session number; None returns False.
        phase: Number of the phase.

    Raises:
        SessionError: The session does not exist.
    """
    core = _core(session)
    return False if core is None else core.is_phase_complete(_phase(phase))


def clear(
    session: int | None = 0,
    phase: int = 0,
    clear_up_to_phase: bool = False,  # noqa: FBT001, FBT002 - upstream's signature
) -> None:
    """Clear the data of a phase; the current one continues empty.

    Args:
        session: Session number; None does nothing.
        phase: Number of the phase.
        clear_up_to_phase: Clear all earlier phases too.

    Raises:
        SessionError: The session or phase does not exist.
    """
    core = _core(session)
    if core is not None:
        core.clear_phase(_phase(phase), clear_up_to_phase)


def _encoded(session: int | None, phase: int, form: str) -> bytes | None:
    if session is None:
        return None
    recording = numbered_session(session)
    shape = recording.plan.upstream_shape
    return encode_phase(recording.core, _phase(phase), form, upstream_shape=shape)


def _core(session: int | None) -> native.Session | None:
    return None if session is None else numbered_session(session).core


def _phase(phase: object) -> int:
    if not isinstance(phase, int) or not 0 <= phase < _MAX_PHASES:
        raise SessionError(f"Phase {phase!r} does not exist: phases count from 0")
    return phase
