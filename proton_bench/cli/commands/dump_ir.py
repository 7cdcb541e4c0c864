"""``proton dump-ir``: write the IR of a run's kernels, to edit it and run with it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from proton_bench.cli.commands.run import interpreter_flags
from proton_bench.cli.options import CONTEXT_SETTINGS, ModuleOption, TargetArgument
from proton_bench.cli.target import TargetWords, read_target
from proton_bench.errors import OutputError, TargetFailedError, UsageError
from proton_bench.recording.launcher.target import TargetKind
from proton_bench.recording.stderr import warn
from proton_bench.support.text import visible

__all__ = ["CONTEXT_SETTINGS", "command"]

_SHELL_SIGNAL = 128  # exit codes of shells for a process that a signal ended


def command(
    target: TargetArgument = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="Folder; new, or empty.")
    ] = Path("ir"),
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="SUFFIX",
            help="Keep only files with this suffix, e.g. ttgir; may be repeated. If no file of a "
            "kernel has it, all its files are kept.",
        ),
    ] = None,
    module: ModuleOption = None,
) -> int:
    """Run a program with Triton's dumps on, and list the files of its kernels.

    Insert lines such as `proton.record start "dot"` and `proton.record end "dot"` into a .ttgir and
    run with TRITON_KERNEL_OVERRIDE=1, TRITON_OVERRIDE_DIR=DIR and TRITON_ALWAYS_COMPILE=1. Nothing
    is recorded in this run. The exit code is the program's own.
    """
    words = read_target(target or [], module, lambda _word: ": check the path")
    folder = _new_folder(output)
    done = subprocess.run(_line(words), env=_environment(folder), check=False)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    if not files and done.returncode == 0:
        raise TargetFailedError(
            "the program compiled no Triton kernel, so there is no IR: check that a GPU is "
            "visible and TRITON_INTERPRET is not set"
        )
    kept = _kept(files, only) if only else files
    if files and not kept:
        _report_nothing_kept(files, f"--only {' '.join(only or ())}", output, done.returncode)
    for path in kept:
        typer.echo(visible(output / path.relative_to(folder)))
    return done.returncode if done.returncode >= 0 else _SHELL_SIGNAL - done.returncode


def _new_folder(output: Path) -> Path:
    folder = output.absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = next(folder.iterdir(), None)
    except OSError as error:
        raise OutputError(f"{output}: {error.strerror or error}; name a folder with -o") from error
    if taken is not None:
        raise UsageError(
            f"{output} is not empty, and edited files in it would be lost: name a new folder with "
            "-o, or remove this one"
        )
    return folder


def _line(words: TargetWords) -> list[str]:
    """Return the command line that runs the target without us."""
    python = [sys.executable, *interpreter_flags(sys.orig_argv), *words.flags]
    starts = {
        TargetKind.SCRIPT: [*python, words.value],
        TargetKind.MODULE: [*python, "-m", words.value],
        TargetKind.CODE: [*python, "-c", words.value],
        TargetKind.PYTEST: [*python, "-m", "pytest"],
        TargetKind.PROGRAM: [words.value],
    }
    return [*starts[words.kind], *words.arguments]


def _environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "TRITON_KERNEL_DUMP": "1",
        "TRITON_DUMP_DIR": str(folder),
        "TRITON_ALWAYS_COMPILE": "1",  # a kernel that comes from the cache is not dumped
        # Sessions of the program itself could add records to the dumps.
        "PROTON_BENCH_DISABLE": "1",
        "TRITON_PROTON_DISABLE": "1",
    }


def _kept(files: Sequence[Path], suffixes: Sequence[str]) -> list[Path]:
    """Remove files of other suffixes, unless these are all files."""
    wanted = {f".{suffix.lstrip('.')}" for suffix in suffixes}
    kept = [path for path in files if path.suffix in wanted]
    for path in {*files} - {*kept} if kept else ():
        path.unlink()
    return kept


def _report_nothing_kept(files: Sequence[Path], only: str, output: Path, returncode: int) -> None:
    kernels = ", ".join(sorted({path.stem for path in files}))
    found = ", ".join(sorted({path.suffix.lstrip(".") for path in files}))
    message = (
        f"{only} matches no file, so all were kept in {output}: for {kernels} there are {found}"
    )
    if returncode == 0:
        raise UsageError(message)
    warn(message)  # the exit code is the program's
