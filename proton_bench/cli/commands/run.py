"""``proton run``: parse the options, then replace the process by the bare runner."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Sequence

import typer

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
    ModeOption,
    ModuleOption,
    NameOption,
    OutputOption,
    QuietOption,
    StrictOption,
    TargetArgument,
    read_output,
)
from proton_bench.cli.router import suggestion
from proton_bench.cli.target import TargetWords, read_target
from proton_bench.recording.launcher.run_options import RunOptions, current_folder, runner_command

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
    module: ModuleOption = None,
    compat: CompatOption = True,
    interpret: InterpretOption = True,
    children: ChildrenOption = True,
    quiet: QuietOption = False,
    strict: StrictOption = False,
) -> None:
    """Run a program and record where the time of its Python processes goes.

    The exit code is the program's own: 128+n after signal n, 2 for wrong usage, 69 for a backend
    that cannot run here, 74 for an output that cannot be written.
    """
    commands: Collection[str] = context.obj or ()
    words = read_target(target or [], module, lambda word: _hint(word, commands))
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
    _become(options, words)


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


def _hint(word: str, commands: Collection[str]) -> str:
    meant = suggestion(word, commands)
    if meant is not None:
        return f"; did you mean the command `proton {meant}`?"
    return ": check the path"


def _become(options: RunOptions, words: TargetWords) -> None:
    """Replace this process, so that the target runs without rich and typer."""
    flags = [*interpreter_flags(sys.orig_argv), *words.flags]
    command_line = runner_command(options, words.arguments, flags)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # closed by the parent
            stream.flush()
    os.execv(command_line[0], command_line)
