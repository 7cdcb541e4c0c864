"""The options of all commands that print a tree."""

from __future__ import annotations

from typing import Annotated

import typer

from proton_bench.analysis.choices import Rows
from proton_bench.report.words.names import FrameFormat

__all__ = [
    "DepthOption",
    "ExcludeOption",
    "FramesOption",
    "IncludeOption",
    "LayersOption",
    "LibraryFramesOption",
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
    typer.Option("--trials", help="Show each launch with which autotuners tried configurations."),
]
RawNamesOption = Annotated[
    bool,
    typer.Option(
        "--raw-names",
        help="Show the names of kernels as they were recorded, Inductor's with their running "
        "numbers, one row each.",
    ),
]
LibraryFramesOption = Annotated[
    Rows, typer.Option("--frames", help="Show runs of library frames as one row, or all frames.")
]
LayersOption = Annotated[
    Rows, typer.Option("--layers", help="Show equal layers and numbered steps as one row, or all.")
]
