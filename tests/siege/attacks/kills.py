"""Commands that write, killed at a random line or moment."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

from integration.baseline_killer import WRITER, kill_at
from siege.attack import Attack, BreachError, Trial
from siege.attacks.readers import load
from siege.attacks.writers import (
    OLD,
    WRITERS,
    Writer,
    check_inputs,
    check_output,
    check_store,
    lay_out,
    make_inputs,
    strangers,
)

from proton_bench.cli import main


def in_fork(folder: Path, writer: Writer, line: int | None) -> int:
    """Start a command in a fork, which dies at that line of files.py; return its number."""
    child = os.fork()
    if child:
        return child
    try:
        os.chdir(folder)
        for number in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False)
        if line is not None:
            kill_at(line)
        main(writer.line(folder / writer.out))
    finally:
        os._exit(0)


def lines_of(folder: Path, writer: Writer) -> int:
    """Return how many lines of what writes files a whole run executes, in this process."""
    lines = itertools.count()

    def look(frame: FrameType, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        if f"{os.sep}baseline{os.sep}" not in file and not file.endswith(WRITER):
            return None
        if event == "line":
            next(lines)
        return look

    def run() -> None:
        os.chdir(folder)
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            sys.stdout = sys.stderr = nowhere
            sys.settrace(look)
            main(writer.line(folder / writer.out))
            sys.settrace(None)

    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            run()
            os.write(writing, b"%d" % next(lines))
        finally:
            os._exit(0)
    os.close(writing)
    text = os.read(reading, 100)
    os.close(reading)
    os.waitpid(child, 0)
    return int(text)


class Kills(Attack):
    """Every writer but recordings, which have an attack of their own."""

    name = "kills"
    about = "export, merge, report, gate and baselines killed at random lines and moments"
    share = 2.0

    def prepare(self, folder: Path) -> None:
        """Load everything and see how long each writer takes."""
        load(folder)
        make_inputs(folder)
        self._inputs = folder
        self._known: dict[Writer, tuple[int, float]] = {}
        self._measured = 0

    def _length(self, writer: Writer) -> tuple[int, float]:
        """Return how many lines and seconds a whole run of a writer takes."""
        if writer not in self._known:
            folder = self._inputs / f"whole{self._measured}"
            self._measured += 1
            folder.mkdir()
            lay_out(self._inputs, folder)
            lines = lines_of(folder, writer)
            begun = time.monotonic()
            os.waitpid(in_fork(folder, writer, None), 0)
            self._known[writer] = (lines, time.monotonic() - begun)
        return self._known[writer]

    def attempt(self, trial: Trial) -> None:
        """Kill one writer and look at what it left."""
        writer = trial.dice.choice(WRITERS)
        lay_out(self._inputs, trial.folder)
        before = {*os.listdir(trial.folder), writer.out}
        if writer.out:
            (trial.folder / writer.out).write_bytes(OLD)
        lines, seconds = self._length(writer)
        if trial.dice.random() < 0.6:
            child = in_fork(trial.folder, writer, trial.dice.randrange(lines + 1))
        else:
            child = in_fork(trial.folder, writer, None)
            time.sleep(trial.dice.uniform(0, seconds))
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if writer.out:
            check_output(writer, trial.folder / writer.out)
        check_store(trial.folder)
        check_inputs(self._inputs, trial.folder)
        foreign = strangers(trial.folder, before)
        if foreign:
            raise BreachError(f"{' '.join(writer.words)} left {foreign}")
