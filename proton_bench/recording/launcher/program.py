"""Runs a program that is not Python as a child, so that Python processes in it can be recorded."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

from proton_bench.errors import UsageError

_FORWARDED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
_SIGNAL_BASE = 128
# Python interpreters ignore these; a program must not inherit that.
_PYTHON_IGNORES = (signal.SIGPIPE, signal.SIGXFSZ)


def run_program(program: str, arguments: Sequence[str]) -> int:
    """Run a program to its end and forward signals of this process.

    A signal of the terminal reaches the program directly and is not forwarded.

    Args:
        program: Path, or a name that is looked up in PATH.
        arguments: The program's own arguments.

    Returns:
        Its exit code, 128+n if signal n ended it.

    Raises:
        UsageError: It cannot be started.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    taken = {one for one in _FORWARDED if signal.getsignal(one) is not signal.SIG_IGN}
    # Blocked before the start, so that none is lost; they stay pending until the loop handles them.
    signal.pthread_sigmask(signal.SIG_BLOCK, taken | {signal.SIGCHLD})
    child = _start(program, arguments)
    while True:
        facts = signal.sigwaitinfo(taken | {signal.SIGCHLD})
        if facts.si_signo == signal.SIGCHLD:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else _SIGNAL_BASE - code
        elif facts.si_code <= 0:  # sent by a process; above 0 by the kernel for the terminal
            os.kill(child, facts.si_signo)


def _start(program: str, arguments: Sequence[str]) -> int:
    try:
        return os.posix_spawnp(
            program,
            [program, *arguments],
            os.environ,
            setsigmask=(),
            setsigdef=_PYTHON_IGNORES,
        )
    except OSError as error:
        raise UsageError(
            f"cannot start {program!r}: {error.strerror}; check its path and permissions"
        ) from None
