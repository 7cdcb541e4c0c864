"""Runs one command line in a forked child with limits on time and memory."""

from __future__ import annotations

import functools
import os
import resource
import subprocess
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from proton_bench.cli import main

MEMORY = 1 << 30
# A fresh process loads Python and the package besides.
START_SECONDS = 2
START_MEGABYTES = 100


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes:
        code: Its exit code, or the number of the signal, negative.
        stderr: Its error output.
        seconds: Processor time that it took.
        megabytes: Most memory, beyond that at the fork.
    """

    code: int
    stderr: str
    seconds: float
    megabytes: float = 0.0


def bounded(folder: Path, words: Sequence[object], seconds: int) -> Ended:
    """Run a command in a folder, with limits on processor time and memory.

    It may reserve twice `MEMORY` bytes more than now, because libraries that start threads reserve
    more than they use; `Ended.megabytes` is what it used.
    """
    errors = folder / "stderr"
    process = os.fork()
    if not process:
        with _ending():
            os.chdir(folder)
            _limit(seconds)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            sys.stdout = os.fdopen(1, "w", closefd=False)
            sys.stderr = os.fdopen(2, "w", closefd=False)
            code = main([str(word) for word in words])
            sys.stderr.flush()
            os._exit(code)
    _, status, used = os.wait4(process, 0)
    text = errors.read_text(errors="replace")
    grown = max(0, used.ru_maxrss - _at_first()) / 1024
    return Ended(os.waitstatus_to_exitcode(status), text, used.ru_utime + used.ru_stime, grown)


def in_fresh_process(folder: Path, words: Sequence[str], seconds: int) -> Ended:
    """Run a command as a user does, within the same limits."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (2 * MEMORY, 2 * MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds + START_SECONDS,) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    errors = folder / "stderr"
    with errors.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "proton_bench", *words],
            cwd=folder,
            preexec_fn=limit,  # noqa: PLW1509 - there are no threads here
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stream,
        )
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    grown = max(0, used.ru_maxrss / 1024 - START_MEGABYTES)
    text = errors.read_text(errors="replace")
    return Ended(process.returncode, text, used.ru_utime + used.ru_stime, grown)


@functools.cache
def _at_first() -> int:
    """Return the KiB of a child that does nothing."""
    process = os.fork()
    if not process:
        os._exit(0)
    return os.wait4(process, 0)[2].ru_maxrss


def _limit(seconds: int) -> None:
    own = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (own + 2 * MEMORY,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@contextmanager
def _ending() -> Iterator[None]:
    """End this process with 99 if an exception escapes: no code of the parent may run in it."""
    try:
        yield
    except BaseException:  # noqa: BLE001 - the code and the text report it
        traceback.print_exc()
    finally:
        os._exit(99)
