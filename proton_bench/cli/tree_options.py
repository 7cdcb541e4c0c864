"""The options of all commands that print a tree."""

from __future__ import annotations

from typing import Annotated

import typer

from proton_bench.report.names import FrameFormat

__all__ = ["DepthOption", "FramesOption"]

DepthOption = Annotated[int, typer.Option("-d", "--depth", help="Levels to show.")]
FramesOption = Annotated[
    FrameFormat, typer.Option("-f", "--format", help="Form of Python frames' names.")
]
