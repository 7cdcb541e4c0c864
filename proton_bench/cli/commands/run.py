"""``proton run``: parse the options, then replace the process by the bare runner."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import typer

from proton_bench.cli.boundary import warn
from proton_bench.cli.options import (
    CONTEXT_SETTINGS,
    BackendOption,
    ChildrenOption,
    CompatOption,
    ContextOption,
    DataOption,
    HookOption,
    InstrumentOption,
    InterpretOption,
    JobOption,
    ModeOption,
    NameOption,
    OutputOption,
    QuietOption,
    StoreOption,
    StrictOption,
    TargetArgument,
    default_name,
    read_output,
)
from proton_bench.cli.target import TargetWords, read_target
from proton_bench.errors import UsageError
from proton_bench.recording.launcher.run_options import RunOptions, current_folder, runner_command
from proton_bench.recording.stderr import is_quiet

__all__ = ["CONTEXT_SETTINGS", "command", "interpreter_flags"]


def command(
    context: typer.Context,
    target: TargetArgument = None,
    name: NameOption = None,
    output: OutputOption = None,
    backend: BackendOption = None,
    context_source: ContextOption = "auto",
    mode: ModeOption = None,
    data: DataOption = "tree",
    hook: HookOption = None,
    instrument: InstrumentOption = None,
    compat: CompatOption = True,
    interpret: InterpretOption = True,
    children: ChildrenOption = True,
    quiet: QuietOption = False,
    strict: StrictOption = False,
    store: StoreOption = None,
    job: JobOption = "default",
) -> int:
    """Run a program and record where the time of its Python processes goes.

    The exit code is the program's own: 128+n after signal n, 2 for wrong usage, 69 for a backend
    that cannot run here, 74 for an output that cannot be written.
    """
    words = read_target(target or [], context.obj or ())
    if store is not None and (name is not None or output is not None):
        raise UsageError("--store takes the files of the run: leave -n and -o out")
    misplaced = words.misplaced(_options_of(context))
    if misplaced and not (quiet or is_quiet()):
        script = os.path.basename(words.value)
        warn(f"{misplaced} stands after {script} and goes to it; options of proton stand before it")
    if name is None and output is None:
        name = default_name(words.name)
    where = read_output(name, output, data, mode)
    options = RunOptions(
        kind=words.kind,
        target=words.value,
        name=where.name,
        formats=where.formats,
        template=where.template,
        folder=current_folder(),
        context=context_source,
        data=data,
        backend=backend,
        mode=mode,
        instrument=_joined(instrument) if instrument else "",
        hook=hook,
        compat=compat,
        interpret=interpret,
        children=children,
        quiet=quiet,
        strict=strict,
        command=("proton", *sys.argv[1:]),
    )
    if store is None:
        _become(options, words)
    from proton_bench.cli.work.store import record

    return record(store, job, lambda folder: _line(_written_to(folder, options), words))


def _options_of(context: typer.Context) -> set[str]:
    options = {text for each in context.command.params for text in each.opts if text[:1] == "-"}
    return options - set(context.help_option_names)


def _joined(passes: Sequence[str]) -> str:
    from proton_bench.recording.kernels.instrument import join_passes

    return join_passes("--instrument", passes)


def interpreter_flags(command_line: list[str]) -> list[str]:
    """Return the interpreter's own options from a command line such as ``sys.orig_argv``.

    They are passed on, so that ``python -W error -m proton_bench x.py`` works.
    """
    flags: list[str] = []
    rest = iter(command_line[1:])
    for word in rest:
        if not word.startswith("-") or word == "-":
            break
        cut = next((i for i, letter in enumerate(word) if letter in "cm"), None)
        if not word.startswith(("--", "-W", "-X")) and cut is not None:
            if cut > 1:
                flags.append(word[:cut])
            break
        flags.append(word)
        if word in ("-W", "-X"):
            flags.append(next(rest, ""))
    return flags


def _written_to(folder: Path, options: RunOptions) -> RunOptions:
    """Return options that write one file of each process to a temporary folder."""
    file = folder / ("run.pftrace" if options.data == "trace" else "run.proton")
    where = read_output(None, str(file), options.data, options.mode)
    name, template, formats = where.name, where.template, where.formats
    return replace(options, name=name, template=template, formats=formats, quiet=True)


def _line(options: RunOptions, words: TargetWords) -> list[str]:
    """Return the command of the bare runner, which runs the target without rich and typer."""
    flags = [*interpreter_flags(sys.orig_argv), *words.flags]
    return runner_command(options, words.arguments, flags)


def _become(options: RunOptions, words: TargetWords) -> NoReturn:
    """Replace this process by the target."""
    command_line = _line(options, words)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # closed by the parent
            stream.flush()
    os.execv(command_line[0], command_line)
