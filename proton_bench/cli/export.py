"""``proton export``: a profile in another file format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proton_bench.cli.output_file import beside, refuse_input
from proton_bench.cli.show import warn
from proton_bench.formats.registry import find_format, read_profile, write_profile

__all__ = ["command"]


def command(
    file: Annotated[Path, typer.Argument(help="Profile of any known format.", metavar="FILE")],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="proton, hatchet, hatchet_msgpack, json, speedscope, folded, pprof, csv, "
            "parquet, or a format of a plugin.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="OUT",
            help="File to write, - for standard output. Without it FILE with another suffix.",
        ),
    ] = None,
) -> None:
    """Write a profile in another format, whole or not at all."""
    suffix = find_format(to).suffixes[0]
    profile = read_profile(file)  # first: what is no file has no other suffix either
    target = output if output is not None else beside(file, suffix)
    refuse_input(target, [file])
    for note in write_profile(profile, target, format=to):
        warn(note)
