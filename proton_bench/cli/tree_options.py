"""The options of all commands that print a tree."""

from __future__ import annotations

from typing import Annotated

import typer

from proton_bench.report.words.names import FrameFormat

__all__ = [
    "REMOVED",
    "DepthOption",
    "ExcludeOption",
    "FramesOption",
    "IncludeOption",
    "RawNamesOption",
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
RawNamesOption = Annotated[
    bool,
    typer.Option(
        "--raw-names",
        help="Show the names of kernels as they were recorded, Inductor's with their running "
        "numbers, one row each.",
    ),
]

# Options of earlier versions, and what to do instead.
REMOVED = {
    **dict.fromkeys(("--frames", "--layers"), "--all shows every row"),
    "--trials": "`proton-viewer --trials` shows the launches of autotuners",
}
