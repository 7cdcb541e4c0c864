"""Reads commands that are run several times, and the options of these commands."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proton_bench.cli.commands.run import interpreter_flags
from proton_bench.cli.target import read_target
from proton_bench.errors import UsageError
from proton_bench.recording.launcher.run_options import RunOptions, current_folder

if TYPE_CHECKING:
    from proton_bench.gate.processes import Command

__all__ = [
    "JsonFileOption",
    "PairsOption",
    "Recording",
    "SetupOption",
    "measured_command",
    "split_command",
    "split_recording",
]

PairsOption = Annotated[
    int | None,
    typer.Option(
        "--runs",
        metavar="R",
        min=1,
        help="Compare at most R pairs of runs, 20 by default; fewer if every path is decided "
        "earlier.",
    ),
]
SetupOption = Annotated[
    str | None,
    typer.Option(
        "--setup",
        metavar="CMD",
        help="Create a virtual environment for each version with this shell command, run in its "
        "tree.",
    ),
]
JsonFileOption = Annotated[
    Path | None,
    typer.Option("--json", metavar="F", help="Write a JSON document; - prints it instead."),
]


_RECORDING = {
    **dict.fromkeys(("-b", "--backend"), "backend"),
    **dict.fromkeys(("-c", "--context"), "context"),
    **dict.fromkeys(("-m", "--mode"), "mode"),
    **dict.fromkeys(("-k", "--hook"), "hook"),
}


@dataclass(frozen=True, slots=True)
class Recording:
    """How the runs are recorded; as the options of `proton run`.

    Attributes:
        backend: Names joined by ``+``; None asks the plugins.
        context: Where call paths come from.
        mode: Mode text.
        hook: Name of a launch hook, or None.
    """

    backend: str | None = None
    context: str = "shadow"
    mode: str | None = None
    hook: str | None = None


def measured_command(words: Sequence[str], recording: Recording) -> Command:
    """Return a command from the words of `proton run TARGET ARGUMENTS`.

    Raises:
        UsageError: The words name nothing that can be run.
    """
    from proton_bench.gate.processes import Command

    target = read_target(words)
    options = RunOptions(
        kind=target.kind,
        target=target.value,
        name="",
        formats=(),
        folder=current_folder(),
        context=recording.context,
        backend=recording.backend,
        mode=recording.mode,
        hook=recording.hook,
        command=("proton", *sys.argv[1:]),
    )
    return Command(options, target.arguments, (*interpreter_flags(sys.orig_argv), *target.flags))


def split_recording(words: Sequence[str]) -> tuple[list[str], Recording]:
    """Split words that may begin with the options of `proton run` that say how to record.

    Raises:
        UsageError: An option has no value.
    """
    left, found = list(words), {}
    while left and (name := _RECORDING.get(left[0].partition("=")[0])):
        word, mark, value = left.pop(0).partition("=")
        if not mark and not left:
            raise UsageError(f"{word} needs a value, and a command after it")
        found[name] = value if mark else left.pop(0)
    return left, Recording(**found)


def split_command(text: str) -> list[str]:
    """Split a command that was given as one word.

    Raises:
        UsageError: A quotation mark is missing.
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--base {text!a} is not a command: {error}") from error
