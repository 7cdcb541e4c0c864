"""Has a native thread write a session's files when Python cannot: on signals, and as time passes.

The thread and its rules are native (``session/watch_thread.h``); here is what only Python knows:
who asked for it, where files go, and which handler the target gives to ``signal.signal``.
"""

from __future__ import annotations

import functools
import math
import os
import signal
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from proton_bench.errors import UsageError
from proton_bench.flags import flags
from proton_bench.recording.native import native
from proton_bench.recording.session.options import STDOUT, CapturePlan
from proton_bench.recording.session.output_format import check_formats
from proton_bench.recording.stderr import is_quiet

__all__ = ["library_asks", "release_outputs", "watch_outputs"]

_exit: Callable[..., NoReturn] = os._exit
_execv: Callable[..., NoReturn] = os.execv
_execve: Callable[..., NoReturn] = os.execve


# ``os._exit`` and ``os.exec*`` end a Python program at once. While a session is watched, native
# code first writes the files, as for a signal. In a forked child, which has no sessions, they are
# the interpreter's own.
def write_before_leaving() -> None:
    """Wrap the exiting functions; repeating this has no effect."""
    os._exit = _write_and_exit
    os.execv = _write_and_execv  # the other six call one of these two
    os.execve = _write_and_execve


def leave_alone() -> None:
    """Undo it, unless another wrapper was added since."""
    for name, ours, plain in (
        ("_exit", _write_and_exit, _exit),
        ("execv", _write_and_execv, _execv),
        ("execve", _write_and_execve, _execve),
    ):
        if getattr(os, name) is ours:
            setattr(os, name, plain)


@functools.wraps(_exit)
def _write_and_exit(*args: Any, **options: Any) -> NoReturn:
    status = options.get("status", *args[:1])
    if hasattr(status, "__index__"):  # else it raises, and the program continues
        _write()
    _exit(*args, **options)


@functools.wraps(_execv)
def _write_and_execv(*args: Any) -> NoReturn:
    if args and _can_start(args[0]):
        _write()
    _execv(*args)


@functools.wraps(_execve)
def _write_and_execve(*args: Any, **options: Any) -> NoReturn:
    if _can_start(options.get("path", *args[:1])):
        _write()
    _execve(*args, **options)


def _can_start(path: Any) -> bool:
    """Return whether an exec can succeed; ``os.execvp`` fails for most folders of PATH."""
    try:
        return isinstance(path, int) or (os.access(path, os.X_OK) and os.path.isfile(path))
    except (TypeError, ValueError):
        return False


def _write() -> None:
    if native.is_watching():  # not in a forked child
        native.write_outputs(is_quiet())


_INTERVAL = "PROTON_BENCH_PARTIAL_INTERVAL_S"
_SIGNALS = "PROTON_BENCH_SIGNALS"
_DEFAULT_INTERVAL_S = 2.0
_MAX_INTERVAL_S = 1e9
_TRUE = ("1", "on", "true")
_FALSE = ("0", "off", "false")

_python_signal: Callable[..., Any] = signal.signal


def library_asks() -> bool:
    """Whether sessions of ``start()`` are watched too: only where the user says so.

    A library must not take the signals of its host in silence, so the default is no;
    ``PROTON_BENCH_SIGNALS=1`` says yes.
    """
    return os.environ.get(_SIGNALS, "").lower() in _TRUE


def watch_outputs(
    core: native.Session, plan: CapturePlan, formats: Sequence[str], *, ends_by_signal: bool
) -> None:
    """Have the session's files written on SIGTERM, SIGHUP and SIGINT, and from time to time.

    Also before ``os._exit`` and ``os.exec*``. A terminal gets nothing then, because only the end
    that Python writes escapes what names hold.

    Every ``PROTON_BENCH_PARTIAL_INTERVAL_S`` seconds (2; 0 switches it off) what was recorded so
    far is written as ``NAME.partial.proton``, which is removed when the session is finalized.
    ``PROTON_BENCH_SIGNALS=0`` switches all of it off.

    Args:
        core: A live session.
        plan: What it records.
        formats: What its end will write.
        ends_by_signal: After a signal that the target does not handle the process dies by that
            signal, as its parent expects; else it exits with 128+n.

    Raises:
        UsageError: The interval is not a number of seconds, or the end cannot write a format.
        BackendUnavailableError: The thread cannot be started.
    """
    check_formats(formats, plan.data, plan.writable_timelines)
    if os.environ.get(_SIGNALS, "").lower() in _FALSE:
        return
    interval_s = _interval_s()
    traces = [name for name in formats if name in plan.trace_formats]
    # Of trees native code knows one format; `proton export` makes the others of it.
    has_trees = len(formats) > len(traces)
    if plan.path == STDOUT:
        has_trees = "proton" in formats and not os.isatty(1)
        traces = [] if os.isatty(1) else traces
    core.protect_outputs(os.fsencode(plan.path), has_trees, traces, plan.is_written_meanwhile)
    native.start_watch(interval_s, ends_by_signal)
    signal.signal = _signal_and_renew
    write_before_leaving()
    _note_interrupt_handler()


def release_outputs(core: native.Session, *, is_written: bool = False) -> None:
    """End the watch of a session; the last one ends the thread, unless a command line runs.

    Args:
        core: The session; one that is not watched is fine.
        is_written: The files are there, so the partial one can go.
    """
    core.release_outputs(is_written)
    if native.is_watching() and not flags.command_line and native.protected_count() == 0:
        if signal.signal is _signal_and_renew:
            signal.signal = _python_signal
        leave_alone()
        native.stop_watch()


def _interval_s() -> float:
    text = os.environ.get(_INTERVAL, "")
    try:
        seconds = float(text) if text else _DEFAULT_INTERVAL_S
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= _MAX_INTERVAL_S:
        raise UsageError(
            f"{_INTERVAL}={text!r} is not a number of seconds: give one, or 0 for never"
        )
    return seconds


@functools.wraps(signal.signal)
def _signal_and_renew(signalnum: Any, handler: Any) -> Any:
    """Install a handler as usual, then let the native one step in front of it again."""
    previous = _python_signal(signalnum, handler)
    native.renew_signal_chain()
    _note_interrupt_handler()
    return previous


def _note_interrupt_handler() -> None:
    native.set_interrupt_is_default(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
