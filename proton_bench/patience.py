"""A bound on processor time, for work whose length others decide."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import warnings
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

from proton_bench.errors import UsageError

__all__ = ["within_time"]

_DONE = b"\x01"  # ends what a child tells


def within_time(seconds: float, message: str, work: Callable[[], bytes]) -> bytes:
    """Return what some work results in, if it takes no more than so much processor time.

    A timer's signal interrupts it, which Python's regular expressions look for while they search.
    Only the main thread gets signals, and a handler of C code could not be put back. In other
    threads, and where the signal or its timer is in use, a child process does the work instead, and
    the signal ends the child.

    Args:
        seconds: Processor time of the process that works.
        message: What the error says.
        work: It prints and changes nothing.

    Raises:
        UsageError: The time is over, or the child ended early.
    """
    if _is_timer_free():
        return _interrupted(seconds, message, work)
    return _in_child(seconds, message, work)


def _is_timer_free() -> bool:
    return (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGVTALRM) in (signal.SIG_DFL, signal.SIG_IGN)
        and signal.getitimer(signal.ITIMER_VIRTUAL)[0] == 0
        and signal.SIGVTALRM not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
        and not _is_caught()
    )


def _is_caught() -> bool:
    """Whether there is a handler; Python does not know of those that C code installs later."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as stream:
            masks = [int(line.split()[1], 16) for line in stream if line.startswith("SigCgt:")]
    except OSError:  # no such file where the system is not Linux
        return False
    return any(mask >> (signal.SIGVTALRM - 1) & 1 for mask in masks)


def _interrupted(seconds: float, message: str, work: Callable[[], bytes]) -> bytes:
    is_over = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        del number, frame
        if not is_over:  # an error from below would keep the handler
            raise UsageError(message)

    before = signal.signal(signal.SIGVTALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        return work()
    finally:
        is_over = True
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _in_child(seconds: float, message: str, work: Callable[[], bytes]) -> bytes:
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child runs no other thread
        process = os.fork()
    if not process:
        _work_and_end(seconds, work, writing)
    try:
        os.close(writing)
        with os.fdopen(reading, "rb") as stream:
            told = stream.read()
    finally:
        with contextlib.suppress(OSError):  # a host that ignores SIGCHLD leaves nothing to wait for
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
    if not told.endswith(_DONE):
        raise UsageError(message)
    return told.removesuffix(_DONE)


def _work_and_end(seconds: float, work: Callable[[], bytes], writing: int) -> NoReturn:
    try:
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGVTALRM])
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        told = work() + _DONE
        with os.fdopen(writing, "wb") as stream:
            stream.write(told)
    finally:
        os._exit(0)
