"""Writes the files of watched sessions if a program exits without running exit handlers.

``os._exit`` and ``os.exec*`` end a Python program at once. While a session is watched, native code
first writes the files, as for a signal that ends the process. In a forked child, which has no
sessions, they are the interpreter's own.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, NoReturn

from proton_bench.recording.native import native
from proton_bench.recording.stderr import is_quiet

__all__ = ["leave_alone", "write_before_leaving"]

_exit: Callable[..., NoReturn] = os._exit
_execv: Callable[..., NoReturn] = os.execv
_execve: Callable[..., NoReturn] = os.execve


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
