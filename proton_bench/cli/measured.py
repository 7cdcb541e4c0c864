"""Reads a command that is to be run several times, and what the gate asks of its runs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from proton_bench.capture.run_options import RunOptions, current_folder
from proton_bench.cli.run import interpreter_flags
from proton_bench.cli.target import read_target
from proton_bench.errors import UsageError
from proton_bench.experiment.command import Command
from proton_bench.gate import Policy, read_policy

__all__ = ["Recording", "asked_policy", "measured_command", "split_command"]

_PROJECT = "pyproject.toml"


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
    target = read_target(words, None, lambda _word: ": check the path")
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


def split_command(text: str) -> list[str]:
    """Return the words of a command that was given as one.

    Raises:
        UsageError: A quotation mark is missing.
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--base {text!r} is no command: {error}") from error


def asked_policy(
    file: Path | None, thresholds: Sequence[str], *, metric: str | None, inconclusive_passes: bool
) -> Policy:
    """Return the policy of a file, by default that of this project, with what was asked besides.

    Args:
        file: TOML; None takes ``pyproject.toml`` of the current folder where there is one.
        thresholds: Expressions such as ``median:5%``.
        metric: What the default threshold is about, such as ``p95`` or ``total``.
        inconclusive_passes: Whether an undecided gate exits with 0.

    Raises:
        UsageError: Something cannot be read.
    """
    project = Path(_PROJECT)
    source = file or (project if project.is_file() else None)
    policy = read_policy(source) if source is not None else Policy()
    if metric is not None:
        percent = policy.default_threshold().amounts[0]
        policy = policy.with_thresholds([f"{metric}:{percent}"])
    policy = policy.with_thresholds(thresholds)
    return replace(policy, inconclusive_passes=True) if inconclusive_passes else policy
