"""Runs one command in its own process group, and ends the whole group with it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from proton_bench.errors import OutputError, UsageError

__all__ = ["Ended", "Launch", "output_end", "run_fresh"]

_PATIENCE_S = 10.0
_SHOWN_LINES = 20
_SHOWN_BYTES = 4000


@dataclass(frozen=True, slots=True)
class Launch:
    """A process to start.

    Attributes:
        line: Program and arguments.
        folder: Current folder.
        log: File that takes stdout and stderr.
        environment: The complete environment.
        inherited: File descriptors that the process gets.
    """

    line: Sequence[str]
    folder: str
    log: Path
    environment: Mapping[str, str]
    inherited: tuple[int, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended.

    Attributes:
        code: Exit code, -n after signal n.
        seconds: Its duration.
    """

    code: int
    seconds: float

    @property
    def text(self) -> str:
        """The same as text."""
        if self.code >= 0:
            return f"ended with exit code {self.code}"
        return f"was ended by {signal.Signals(-self.code).name}"


def run_fresh(launch: Launch) -> Ended:
    """Run a process to its end. Any interruption ends the process and its children.

    Raises:
        UsageError: It cannot be started.
        OutputError: Its log cannot be written.
    """
    try:
        # Create a new file: an existing one may be a link to elsewhere.
        launch.log.unlink(missing_ok=True)
        log = launch.log.open("xb")
    except OSError as error:
        raise OutputError(f"cannot write {str(launch.log)!a}: {error.strerror}") from error
    with log:
        begun = time.monotonic()
        running = None
        try:
            running = _start(launch, log)
            code = running.wait()
        finally:
            if running is not None:
                _end(running)
    return Ended(code, time.monotonic() - begun)


def output_end(log: Path) -> str:
    """Return the last lines of a process's output, "" for none."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(stream.seek(0, os.SEEK_END) - _SHOWN_BYTES, 0))
            text = stream.read().decode("utf-8", "backslashreplace")
    except OSError:
        return ""
    return "\n".join(text.rstrip().splitlines()[-_SHOWN_LINES:])


def _start(launch: Launch, log: BinaryIO) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            launch.line,
            cwd=launch.folder or None,
            env=dict(launch.environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=launch.inherited,
        )
    except OSError as error:
        raise UsageError(f"cannot start {launch.line[0]!a}: {error.strerror}") from error


def _end(running: subprocess.Popen[bytes]) -> None:
    """Terminate the rest of the group, then kill it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(running.pid, signal.SIGTERM)
    try:
        running.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()
