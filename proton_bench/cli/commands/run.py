"""``proton run``: parse the options, then replace the process by the bare runner."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from proton_bench.cli.boundary import warn
from proton_bench.cli.options import CONTEXT_SETTINGS, JobOption, TargetArgument
from proton_bench.cli.target import TargetWords, interpreter_flags, read_target
from proton_bench.errors import UsageError
from proton_bench.recording.launcher.run_options import RunOptions, current_folder, runner_command
from proton_bench.recording.session.output_name import (
    OUTPUT_SUFFIXES,
    OutputName,
    read_name,
    split_suffix,
)
from proton_bench.recording.stderr import is_quiet

__all__ = ["CONTEXT_SETTINGS", "command", "default_name", "read_output"]


def command(
    context: typer.Context,
    target: TargetArgument = None,
    name: Annotated[
        str | None,
        typer.Option(
            "-n",
            "--name",
            metavar="NAME",
            help="Write NAME.proton and NAME.hatchet, with -d trace NAME.pftrace instead of "
            "NAME.hatchet (default: the script's name); with a known suffix in NAME only that "
            "file. Fields: {rank} {local_rank} {host} {pid} {date} {%ENV}.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write only FILE: .proton, .hatchet or .hatchet_msgpack; with -d trace also "
            ".chrome_trace or .pftrace.",
        ),
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(
            "-b",
            "--backend",
            metavar="NAME[+NAME]",
            help="What records (default: the backend for this machine); see `proton doctor`.",
        ),
    ] = None,
    context_source: Annotated[
        str,
        typer.Option(
            "-c",
            "--context",
            metavar="SOURCE[+SOURCE]",
            help="What makes call paths: shadow (scopes), python (Python frames), layers, ops and "
            "shapes (of torch programs), or auto: scopes and layers.",
        ),
    ] = "auto",
    mode: Annotated[
        str | None,
        typer.Option("-m", "--mode", metavar="MODE[:KEY=VALUE]...", help="Mode of the backend."),
    ] = None,
    data: Annotated[
        str,
        typer.Option(
            "-d", "--data", metavar="tree|trace", help="Record a tree, or also a timeline."
        ),
    ] = "tree",
    hook: Annotated[
        str | None,
        typer.Option(
            "-k",
            "--hook",
            metavar="triton",
            help="Launch hook, e.g. triton: evaluate launch_metadata, read bytes from the code.",
        ),
    ] = None,
    instrument: Annotated[
        list[str] | None,
        typer.Option(
            "--instrument",
            metavar="PASS[:FILTER]...[,PASS...]",
            help="Record operations inside Triton kernels: loops, loads, stores, dots, waits, "
            "barriers, all, or print-ops to list them. Filters: kernel=, file=, line=. May be "
            "repeated.",
        ),
    ] = None,
    compat: Annotated[
        bool,
        typer.Option(
            "--compat/--no-compat", help="Make `import triton.profiler` in the target import ours."
        ),
    ] = True,
    interpret: Annotated[
        bool,
        typer.Option(
            "--interpret/--no-interpret",
            help="Without a GPU driver, switch Triton to its interpreter.",
        ),
    ] = True,
    children: Annotated[
        bool,
        typer.Option(
            "--children/--no-children",
            help="Also record Python processes that the target starts, as NAME.pid<N> or "
            "NAME.rank<N>.",
        ),
    ] = True,
    steps: Annotated[
        str | None,
        typer.Option(
            "--steps",
            metavar="FIRST:END",
            help="Record only these steps, counted from 0, without END: 10:20, :20 or 10:.",
        ),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(
            "--after",
            metavar="STEPS|TIME",
            help="Record from then on: 100 (steps), or 60s, 2m (time).",
        ),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(
            "--every", metavar="STEPS|TIME", help="Record again and again, each time --for a while."
        ),
    ] = None,
    length: Annotated[
        str | None,
        typer.Option("--for", metavar="STEPS|TIME", help="Length of such a window."),
    ] = None,
    align: Annotated[
        str | None,
        typer.Option(
            "--align",
            metavar="TIME",
            help="Windows begin at multiples of it by the clock, those of all ranks together.",
        ),
    ] = None,
    window_on: Annotated[
        str | None,
        typer.Option(
            "--window-on",
            metavar="cuda|nvtx:NAME|SIGNAL|file:PATH",
            help="Record from cudaProfilerStart to Stop, in a range, from one signal to the next, "
            "or while a file exists.",
        ),
    ] = None,
    each: Annotated[
        bool,
        typer.Option(
            "--each", help="Write each window to a file of its own, NAME.w1, NAME.w2, ..."
        ),
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", help="Print only errors: no notices, warnings or names of files."),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Exit with 74 if the profile cannot be written at the end, with 5 if the program "
            "ended well and nothing but samples of the host was recorded.",
        ),
    ] = False,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="STORE",
            help="Add the profiles of all processes to this store at the end, instead of writing "
            "files: see `proton store`.",
        ),
    ] = None,
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
    windows = {
        "steps": steps,
        "after": after,
        "every": every,
        "for": length,
        "align": align,
        "window-on": window_on,
        "each": "" if each else None,
    }
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
        needs_records=strict,
        windows=_checked({name: text for name, text in windows.items() if text is not None}, where),
        command=("proton", *sys.argv[1:]),
    )
    if store is None:
        _become(options, words)
    from proton_bench.cli.commands.store import record

    return record(store, job, lambda folder: _line(_written_to(folder, options), words))


def _checked(windows: dict[str, str], where: OutputName) -> dict[str, str]:
    """Check the options of recording windows, before the program starts."""
    if windows:
        from proton_bench.recording.session.windows import WindowPlan

        trigger = WindowPlan.read(windows).trigger
        if trigger:
            windows["window-on"] = trigger  # with an absolute path
        if "each" in windows and where.name in ("", "-"):
            raise UsageError("--each needs names of files: name one with -n or -o")
    return windows


def _options_of(context: typer.Context) -> set[str]:
    options = {text for each in context.command.params for text in each.opts if text[:1] == "-"}
    return options - set(context.help_option_names)


def _joined(passes: Sequence[str]) -> str:
    from proton_bench.recording.kernels.instrument import join_passes

    return join_passes("--instrument", passes)


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


def default_name(target: str) -> str:
    """Return the value of ``-n`` that stands for the name of a target, whatever is in it."""
    stem = split_suffix(target)[0].replace("{", "{{").replace("}", "}}")
    return os.path.join(os.curdir, stem)  # "-" would be stdout


def read_output(
    name: str | None, output: str | None, data: str = "tree", mode: str | None = None
) -> OutputName:
    """Turn ``-n`` and ``-o``, of which one is given, into a name and the formats to write.

    Args:
        name: Value of ``-n``.
        output: Value of ``-o``.
        data: Kind of data that is recorded.
        mode: Mode text.

    Raises:
        UsageError: Both are given, ``-o`` has no known suffix, or the name is wrong.
    """
    if name is not None and output is not None:
        raise UsageError("-n/--name and -o/--output exclude each other: give one of them")
    if output is None:
        return read_name(name or "", data=data, mode=mode)
    if output not in ("", "-") and not split_suffix(output)[1]:
        known = ", ".join(OUTPUT_SUFFIXES)
        raise UsageError(f"-o {output!r} has no suffix of a known format: end it with {known}")
    return read_name(output, data=data, mode=mode)
