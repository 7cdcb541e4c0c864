"""Repeats the benchmarks in fresh processes, the replicates of the gate."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from proton_bench.gate.experiment.folders.project import store_of_project
from proton_bench.gate.experiment.folders.store import new_folder
from proton_bench.gate.experiment.processes.command import Command
from proton_bench.gate.experiment.replicates import Replicates, replicates
from proton_bench.recording.launcher.run_options import RunOptions
from proton_bench.recording.launcher.target import PYTEST_AS_MODULE, TargetKind
from proton_bench.support.files import write_file

__all__ = ["replicate_command", "replicates_of"]

_TESTS = "tests.json"


@contextlib.contextmanager
def replicates_of(config: pytest.Config, tests: Sequence[str], most: int) -> Iterator[Replicates]:
    """Yield runs of tests, each in a fresh process without workers, and keep the profiles.

    Args:
        config: Of this run, whose arguments the processes are started with.
        tests: Node ids of the tests.
        most: Processes there are at most.

    Raises:
        OutputError: Something cannot be written.
    """
    folder = new_folder("pytest", store_of_project(config.rootpath))
    file = folder / _TESTS
    write_file(file, json.dumps(list(tests)))
    command = replicate_command(config, file)
    with replicates(command, doing="pytest", folder=folder, most=most) as made:
        yield made


def replicate_command(config: pytest.Config, tests: Path) -> Command:
    """Return the command of a fresh process.

    Args:
        config: Of this run.
        tests: File with the node ids of the tests.
    """
    option = config.getoption
    arguments = [os.fspath(each) for each in config.invocation_params.args]
    own = [f"--proton-replicate={tests}"]
    if config.pluginmanager.hasplugin("xdist"):
        # Workers would disturb each other's measurements.
        own += ["-n0", "--dist=no"]
    if option("basetemp"):
        # Each process empties its folder for temporary files, and this run may need its own.
        own.append(f"--basetemp={tests.parent / 'tmp'}")
    folder = str(config.invocation_params.dir)
    return Command(
        RunOptions(
            kind=TargetKind.PYTEST,
            target=PYTEST_AS_MODULE if _sees(folder) else "",
            name="",
            formats=(),
            folder=folder,
            context=option("proton_context"),
            backend=option("proton_backend"),
            mode=option("proton_mode"),
            instrument=option("proton_instrument") or "",
            hook=option("proton_hook"),
            command=("pytest", *arguments),
        ),
        tuple(_before_paths(arguments, own)),
    )


def _sees(folder: str) -> bool:
    """Whether modules of the folder can be imported, as under ``python -m pytest``."""
    return "" in sys.path or folder in sys.path


def _before_paths(arguments: Sequence[str], own: Sequence[str]) -> list[str]:
    """Put options in front of ``--``, after which nothing is an option."""
    place = arguments.index("--") if "--" in arguments else len(arguments)
    return [*arguments[:place], *own, *arguments[place:]]
