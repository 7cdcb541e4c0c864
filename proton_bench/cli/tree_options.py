"""The options of all commands that print a tree."""

from __future__ import annotations

from typing import Annotated

import typer

from proton_bench.analysis.choices import Demangling
from proton_bench.report.words.names import FrameFormat

__all__ = [
    "DemanglingOption",
    "DepthOption",
    "ExcludeOption",
    "FramesOption",
    "IncludeOption",
    "RawNamesOption",
    "TrialsOption",
]

DepthOption = Annotated[int, typer.Option("-d", "--depth", help="Levels to show.")]
FramesOption = Annotated[
    FrameFormat, typer.Option("-f", "--format", help="Form of Python frames' names.")
]
IncludeOption = Annotated[
    str | None,
    typer.Option(
        "-i",
        "--include",
        metavar="REGEX",
        help="Keep rows whose name matches from its start, with the rows above and below them.",
    ),
]
ExcludeOption = Annotated[
    str | None,
    typer.Option(
        "-e",
        "--exclude",
        metavar="REGEX",
        help="Leave out rows whose name matches from its start, and the rows below them. "
        "Values of the rows above do not change.",
    ),
]
TrialsOption = Annotated[
    bool,
    typer.Option("--trials", help="Also show launches with which autotuners tried configurations."),
]
RawNamesOption = Annotated[
    bool,
    typer.Option(
        "--raw-names", help="Show Inductor's kernels with their running numbers, one row each."
    ),
]
DemanglingOption = Annotated[
    Demangling, typer.Option("--demangle", help="Show C++ names in full or without arguments.")
]
