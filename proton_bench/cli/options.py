"""The options of ``proton run``, and how ``-n`` and ``-o`` name the output."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from proton_bench.errors import UsageError
from proton_bench.recording.session.output_name import (
    OUTPUT_SUFFIXES,
    OutputName,
    read_name,
    split_suffix,
)

__all__ = [
    "CONTEXT_SETTINGS",
    "BackendOption",
    "ChildrenOption",
    "CompatOption",
    "ContextOption",
    "DataOption",
    "HookOption",
    "InstrumentOption",
    "InterpretOption",
    "JobOption",
    "ModeOption",
    "NameOption",
    "OutputOption",
    "QuietOption",
    "StoreOption",
    "StrictOption",
    "TargetArgument",
    "default_name",
    "read_output",
]

# For commands that run a target: everything after the first positional belongs to it, including
# --help and --.
CONTEXT_SETTINGS = {"allow_interspersed_args": False, "help_option_names": ["-h", "--help"]}

TargetArgument = Annotated[
    list[str] | None,
    typer.Argument(
        help="A script, `pytest`, `python` or any program, then its own arguments, passed on "
        "unchanged.",
        show_default=False,
        metavar="TARGET",
    ),
]
NameOption = Annotated[
    str | None,
    typer.Option(
        "-n",
        "--name",
        metavar="NAME",
        help="Write NAME.proton and NAME.hatchet, with -d trace NAME.pftrace instead of "
        "NAME.hatchet (default: the script's name); with a known suffix in NAME only that file. "
        "Fields: {rank} {local_rank} {host} {pid} {date} {%ENV}.",
    ),
]
OutputOption = Annotated[
    str | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write only FILE: .proton, .hatchet or .hatchet_msgpack; with -d trace also "
        ".chrome_trace or .pftrace.",
    ),
]
BackendOption = Annotated[
    str | None,
    typer.Option(
        "-b",
        "--backend",
        metavar="NAME[+NAME]",
        help="What records (default: the backend for this machine); see `proton doctor`.",
    ),
]
ContextOption = Annotated[
    str,
    typer.Option(
        "-c",
        "--context",
        metavar="SOURCE[+SOURCE]",
        help="What makes call paths: shadow (scopes), python (Python frames), layers and ops (of "
        "torch programs), or auto: scopes and layers.",
    ),
]
ModeOption = Annotated[
    str | None,
    typer.Option("-m", "--mode", metavar="MODE[:KEY=VALUE]...", help="Mode of the backend."),
]
InstrumentOption = Annotated[
    list[str] | None,
    typer.Option(
        "--instrument",
        metavar="PASS[:FILTER]...[,PASS...]",
        help="Record operations inside Triton kernels: loops, loads, stores, dots, waits, "
        "barriers, all, or print-ops to list them. Filters: kernel=, file=, line=. May be "
        "repeated.",
    ),
]
DataOption = Annotated[
    str,
    typer.Option("-d", "--data", metavar="tree|trace", help="Record a tree, or also a timeline."),
]
HookOption = Annotated[
    str | None,
    typer.Option(
        "-k",
        "--hook",
        metavar="triton",
        help="Launch hook, e.g. triton: evaluate launch_metadata, read bytes from the code.",
    ),
]
CompatOption = Annotated[
    bool,
    typer.Option(
        "--compat/--no-compat", help="Make `import triton.profiler` in the target import ours."
    ),
]
InterpretOption = Annotated[
    bool,
    typer.Option(
        "--interpret/--no-interpret",
        help="Without a GPU driver, switch Triton to its interpreter.",
    ),
]
ChildrenOption = Annotated[
    bool,
    typer.Option(
        "--children/--no-children",
        help="Also record Python processes that the target starts, as NAME.pid<N> or NAME.rank<N>.",
    ),
]
QuietOption = Annotated[
    bool,
    typer.Option("--quiet", help="Print only errors: no notices, warnings or names of files."),
]
StrictOption = Annotated[
    bool,
    typer.Option("--strict", help="Exit with 74 if the profile cannot be written at the end."),
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="STORE",
        help="Add the profiles of all processes to this store at the end, instead of writing "
        "files: see `proton store`.",
    ),
]
JobOption = Annotated[
    str, typer.Option("--job", metavar="NAME", help="The job: what is compared over time.")
]


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
