"""The kernel that Triton's interpreter runs on a thread, and the scopes that it opens there.

In a compiled kernel an unclosed scope is a compile error. Python runs an interpreted kernel, where
the scope would stay open after the kernel and contain later work.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from proton_bench.errors import ScopeError
from proton_bench.recording.native import native
from proton_bench.recording.stderr import warn


class _Running(threading.local):
    kernel: str = ""
    depth: int = 0  # of the thread's stack when the kernel begins


_running = _Running()
_warned: set[tuple[str, str]] = set()  # kernel and scope, for the life of the process


@contextlib.contextmanager
def interpreting(kernel: str) -> Iterator[None]:
    """Run a launch; scopes that its programs leave open are closed.

    Args:
        kernel: Name of the kernel.
    """
    outer = _running.kernel, _running.depth
    _running.kernel, _running.depth = kernel, native.thread_depth()
    try:
        yield
        end_program()
    except BaseException:
        abandon_scopes(_running.depth)  # the exception says enough
        raise
    finally:
        _running.kernel, _running.depth = outer


def end_program() -> None:
    """Close scopes that a program of the thread's kernel left open, and warn."""
    if _running.kernel:
        close_scopes_above(_running.depth)


def close_scopes_above(depth: int) -> None:
    """Close scopes that the thread's kernel left open, and warn once of each.

    Args:
        depth: Of the thread's stack, without them.
    """
    kernel = _running.kernel
    for scope in abandon_scopes(depth):
        if (kernel, scope) not in _warned:
            _warned.add((kernel, scope))
            warn(
                f"kernel {kernel!r}: scope {scope!r} is opened but never closed: it was closed at "
                "the end of the program or the loop around it; close it in the block that opens "
                "it"
            )


def abandon_scopes(depth: int) -> list[str]:
    """Close scopes of the calling thread and return their names, the innermost first.

    Args:
        depth: Of the thread's stack, without them.
    """
    if native.thread_depth() <= depth:
        return []
    frames = dict(native.open_frames())
    closed: list[str] = []
    while (at := native.thread_depth()) > depth:
        frame = frames.get(at)  # None for a scope that was opened without an active session
        if frame is not None and frame[1] != native.KIND_SCOPE:
            break  # a running operator ends by itself
        native.exit_scope()
        if frame is not None:
            closed.append(frame[0])
    return closed


def exit_scope(name: str) -> None:
    """Close a scope on the calling thread, in a kernel or outside.

    Args:
        name: Name of the scope.

    Raises:
        ScopeError: It is not the newest open one, or was opened before the kernel began.
    """
    if not _running.kernel:
        native.exit_scope(name)
        return
    if native.thread_depth() <= _running.depth:
        raise ScopeError(
            f"kernel {_running.kernel!r}: scope {name!r} is closed but not open; each exit_scope "
            "needs one enter_scope before it in the same kernel"
        )
    try:
        native.exit_scope(name)
    except ScopeError as error:
        raise ScopeError(f"kernel {_running.kernel!r}: {error}") from None
