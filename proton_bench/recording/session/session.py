"""Starting, pausing and ending sessions by their numbers: the face that scripts use."""

from __future__ import annotations

import functools
import inspect
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from proton_bench.errors import ProtonError
from proton_bench.flags import flags

# A thread that is the first to name a scope would import it, and a child that is forked meanwhile
# would wait for that import for ever: scopes and states are loaded with the session.
from proton_bench.recording import compat
from proton_bench.recording.context import scope as _scope  # noqa: F401
from proton_bench.recording.context import state as _state  # noqa: F401
from proton_bench.recording.kernels.hooks import Hook
from proton_bench.recording.session.interrupts import uninterrupted
from proton_bench.recording.session.options import SessionOptions, session_path
from proton_bench.recording.session.output import library_formats
from proton_bench.recording.session.output_format import check_formats, chosen_trace_formats
from proton_bench.recording.session.partials import library_asks, write_partials
from proton_bench.recording.session.recording import (
    Session,
    find_session,
    known_session,
    live_sessions,
    open_session,
    unknown_session,
)
from proton_bench.recording.stderr import warn

if TYPE_CHECKING:
    from proton_bench.recording.session.windows import Schedule

__all__ = [
    "DEFAULT_PROFILE_NAME",
    "Session",
    "SessionOptions",
    "activate",
    "deactivate",
    "finalize",
    "find_session",
    "is_disabled",
    "numbered_session",
    "open_session",
    "profile",
    "start",
]

_F = TypeVar("_F", bound=Callable[..., object])

DEFAULT_PROFILE_NAME = "proton"
# The session that the ``proton`` command opens before the script runs.
_COMMAND_LINE_SESSION = 0
_TRUE = ("on", "true", "1")


def start(  # noqa: PLR0913 - upstream's, and a schedule
    name: str | os.PathLike[str] | None = None,
    *,
    context: str = "shadow",
    data: str = "tree",
    backend: str | None = None,
    mode: object = None,
    hook: Hook | str | None = None,
    schedule: Schedule | None = None,
) -> int | None:
    """Start a session, or activate the live one with the same name again.

    Args:
        name: Output path without a suffix, ``proton`` in the current folder by default; "" and
            "-" mean stdout.
        context: Where call paths come from: ``shadow`` (scopes), ``python`` (Python frames),
            ``layers`` and ``ops`` (of torch programs), joined by ``+``; ``auto`` is layers.
        data: Kind of data, ``tree``, or ``trace`` where the backends record timelines.
        backend: Names joined by ``+``, e.g. ``cpu``; None asks the plugins for their default.
        mode: Mode text or object for the backend that declares it.
        hook: ``triton`` or a ``Hook``, which sees launches and reads launch metadata.
        schedule: Which steps are recorded, of `proton_bench.schedule` or ``torch.profiler``'s; the
            program calls `proton_bench.step` at the end of each. Each window has its own file,
            ``NAME.w1`` and so on.

    Returns:
        The session's number; None where profiling is disabled. Under the ``proton`` command, a
        name makes a session beside the command's; without one, or if none can be made, it is 0,
        the command's, which goes on if it was deactivated.

    Raises:
        UsageError: An option is unknown or does not fit.
        BackendUnavailableError: A backend cannot run here.
        OutputError: The output cannot be written. Nothing is left switched on in any case.
    """
    if is_disabled():
        return None
    if flags.command_line and (name is None or _names_commands(name)):
        return _commands_session()
    options = SessionOptions(
        name=DEFAULT_PROFILE_NAME if name is None else name,
        context=context,
        data=data,
        backend=backend,
        mode=mode,
        hook=hook,
        trace_formats=chosen_trace_formats("chrome_trace"),
        upstream_shape=compat.is_in_use(),
    )
    try:
        if schedule is not None:
            from proton_bench.recording.session.windows import ScheduledWindows

            return ScheduledWindows(schedule, options).session.id
        session = open_session(options)
        if library_asks():
            write_partials(session, library_formats("", session.plan.end_formats))
        return session.id
    except ProtonError as error:
        if not flags.command_line:
            raise
        warn(f"start({options.name!r}) writes no file, the command's has what it records: {error}")
        return _commands_session()


def _commands_session() -> int:
    paused = find_session(_COMMAND_LINE_SESSION)
    if paused is not None and not paused.is_windowed:  # paused by the script
        paused.activate()
    return _COMMAND_LINE_SESSION


def _names_commands(name: str | os.PathLike[str]) -> bool:
    session = find_session(_COMMAND_LINE_SESSION)
    return session is not None and session.path == session_path(name)


def _is_commands(session: Session) -> bool:
    return flags.command_line and session is find_session(_COMMAND_LINE_SESSION)


def activate(session: int | None = None) -> None:
    """Go on recording, except in a session with recording windows.

    Args:
        session: Session number; None means all sessions.

    Raises:
        SessionError: The session does not exist.
    """
    for each in _chosen(session):
        if not each.is_windowed:
            each.activate()


def deactivate(session: int | None = None, flushing: bool = False) -> None:  # noqa: FBT001, FBT002
    """Stop recording and keep what was recorded, except in a session with recording windows.

    Args:
        session: Session number; None means all sessions.
        flushing: Wait until the work submitted so far is recorded.

    Raises:
        SessionError: The session does not exist.
    """
    for each in _chosen(session):
        if not each.is_windowed:
            each.deactivate(flushing=flushing)


def finalize(session: int | None = None, output_format: str = "") -> None:
    """Stop recording, write the files and forget the session.

    Ignored for a number that no live session has, and for the session of the ``proton`` command,
    which is written when the script is over.

    Args:
        session: Session number; None means all sessions.
        output_format: ``hatchet``, ``hatchet_msgpack``, ``proton``, ``json``, or for
            ``data="trace"`` also ``chrome_trace``, or what ``PROTON_BENCH_TRACE_FORMATS`` names;
            "" is ``hatchet``, or all of these for that, or the format of ``periodic_flushing``.

    Raises:
        UsageError: The format is unknown.
        OutputError: A file cannot be written; the other sessions are written all the same.
    """
    if output_format:
        check_formats([output_format], "trace")
    if isinstance(session, int) and find_session(session) is None:
        return
    chosen = [each for each in _chosen(session) if not _is_commands(each)]
    with uninterrupted() as interrupts:
        _finalize(chosen, output_format)
    if interrupts:
        signal.raise_signal(signal.SIGINT)


def _finalize(chosen: Sequence[Session], output_format: str) -> None:
    first_error: Exception | None = None
    for each in chosen:
        try:
            if each.is_live:  # else its windows have moved on to another session
                each.end_windows()
            each.finalize(_formats_of(each, output_format))
            for remark in each.remarks if each.has_window else ():
                warn(remark)
        except Exception as error:  # noqa: BLE001 - raised below, after the other sessions
            first_error = first_error or error
    if first_error is not None:
        raise first_error


def _formats_of(session: Session, output_format: str) -> tuple[str, ...]:
    if not session.is_windowed or session.has_window:
        return library_formats(output_format, session.plan.end_formats)
    if session.path.endswith(".w1"):
        warn(f"{session.path}: nothing was recorded, no window of the schedule began")
    return ()


@overload
def profile(func: _F) -> _F: ...
@overload
def profile(
    func: None = None,
    *,
    name: str | os.PathLike[str] | None = None,
    context: str = "shadow",
    data: str = "tree",
    backend: str | None = None,
    mode: object = None,
    hook: Hook | str | None = None,
) -> Callable[[_F], _F]: ...
def profile(  # noqa: PLR0913 - upstream's signature
    func: Any = None,
    *,
    name: str | os.PathLike[str] | None = None,
    context: str = "shadow",
    data: str = "tree",
    backend: str | None = None,
    mode: object = None,
    hook: Hook | str | None = None,
) -> Any:
    """Decorate a function so that a session is active during its calls.

    The session is deactivated after the outermost call, also one that raises, and stays live until
    ``finalize``; the next call activates it again.

    Args:
        func: Function or coroutine function; None where options are given.
        name: As of ``start``.
        context: As of ``start``.
        data: As of ``start``.
        backend: As of ``start``.
        mode: As of ``start``.
        hook: As of ``start``.
    """
    options = {
        "name": name,
        "context": context,
        "data": data,
        "backend": backend,
        "mode": mode,
        "hook": hook,
    }
    if func is None:
        return functools.partial(_decorate, options=options)
    return _decorate(func, options=options)


def _decorate(func: _F, *, options: dict[str, Any]) -> _F:
    calls = _Calls(options)
    if inspect.iscoroutinefunction(func):

        @functools.wraps(func)
        async def run_coroutine(*args: object, **kwargs: object) -> object:
            with calls:
                return await func(*args, **kwargs)

        return cast("_F", run_coroutine)

    @functools.wraps(func)
    def run(*args: object, **kwargs: object) -> object:
        with calls:
            return func(*args, **kwargs)

    return cast("_F", run)


class _Calls:
    """The calls of a decorated function that are under way, also recursive and concurrent ones."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._count = 0
        self._session: int | None = None

    def __reduce__(self) -> tuple[type[_Calls], tuple[dict[str, Any]]]:
        """Be pickled with the function, by what pickles functions by value, without its calls."""
        return _Calls, (self._options,)

    def __enter__(self) -> None:
        with self._lock:
            # The command's session is neither paused nor resumed here.
            if not flags.command_line or self._options["name"] is not None:
                self._session = start(**self._options)
            self._count += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._count -= 1
            # One that the function finalized is gone.
            session = None if self._session is None else find_session(self._session)
            if self._count == 0 and session is not None and not _is_commands(session):
                session.deactivate()


def numbered_session(session: int) -> Session:
    """Return the live session that a script means by a number.

    Raises:
        SessionError: There is none; the message names the live ones.
    """
    if not isinstance(session, int):
        raise unknown_session(session)
    return known_session(session)


def _chosen(session: int | None) -> list[Session]:
    if session == _COMMAND_LINE_SESSION and flags.command_line and not live_sessions():
        return []  # a forked child of the target: the session is its parent's
    return live_sessions() if session is None else [numbered_session(session)]


def _select_backend() -> str:
    """Return the backends that a session takes that names none, as upstream's private name does."""
    from proton_bench.plugin.manager import resolve_backend

    return "+".join(backend.name for backend in resolve_backend(None))


def is_disabled() -> bool:
    """Whether ``TRITON_PROTON_DISABLE`` or upstream's knob switches profiling off."""
    knobs = getattr(sys.modules.get("triton.knobs"), "proton", None)
    if knobs is not None:  # reads the variable itself, and may be set by the script
        return bool(getattr(knobs, "disable", False))
    return os.environ.get("TRITON_PROTON_DISABLE", "").lower() in _TRUE
